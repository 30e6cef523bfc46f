package responses

import (
	"net/http"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
)

// ownCodes are the codes that only this dialect has. Some of them come inside a
// stream, where no status says whose fault it was.
var ownCodes = []struct {
	class failure.Class
	name  string
	codes []string
	// seal marks reasoning that the provider cannot read: the request can be repaired
	// by leaving it out (K5).
	seal bool
}{
	{failure.InvalidRequest, "encrypted_content", []string{"invalid_encrypted_content", "thinking_signature_invalid"}, true},
	{failure.ContentPolicy, "policy_code", []string{
		"image_content_policy_violation", "bio_policy", "cyber_policy", "misalignment_policy_violation",
	}, false},
	{failure.InvalidRequest, "input_code", []string{
		"invalid_prompt", "invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url",
		"image_too_large", "image_too_small", "image_parse_error", "invalid_image_mode", "image_file_too_large",
		"unsupported_image_media_type", "empty_image_file", "failed_to_download_image", "image_file_not_found",
		"data_residency_mismatch", "previous_response_not_found",
	}, false},
	{failure.ServerError, "server_code", []string{"server_error", "vector_store_timeout"}, false},
	{failure.ServerError, "overloaded", []string{"server_is_overloaded", "overloaded"}, false},
}

// Classify names a reply that is no 2xx: by this dialect's own codes, else as Chat
// does, whose errors OpenAI and all others share (W4).
func (Outbound) Classify(r dialect.Refusal) failure.Failure {
	f := chat.Outbound{}.Classify(r)
	code, param := stated(r.Body)
	for i := range ownCodes {
		row := &ownCodes[i]
		if !slices.Contains(row.codes, code) {
			continue
		}
		f.Class, f.Code, f.SealRejected = row.class, row.name, row.seal
		switch {
		case f.Class == failure.ServerError:
			f.Relay = nil
		case f.Relay == nil:
			f.Relay = &failure.Relay{Status: http.StatusBadRequest, Code: code, Param: param}
		}
		return f
	}
	return f
}

// stated is the code of an error and the field that it points at.
func stated(body []byte) (code, param string) {
	doc, ok := rawjson.Parse(body)
	if !ok {
		return "", ""
	}
	if e := doc.Get("error"); e.IsObject() {
		doc = e
	}
	copied := func(v gjson.Result) string { return string([]byte(v.Str)) }
	return copied(doc.Get("code")), copied(doc.Get("param"))
}

// inStream names an error inside a 2xx: by what it says itself, since its status says
// nothing (S4).
func inStream(body []byte) *failure.Failure {
	f := Outbound{}.Classify(dialect.Refusal{Status: http.StatusOK, Body: body})
	if f.Class == failure.ServerError {
		f.Class = failure.StreamErrorEvent
	}
	return &f
}

package fakeprovider

import (
	"encoding/json"
	"net/http"
	"strings"
)

// exception writes Bedrock's error. Its type travels in a header; here it stands in
// the body until the failure is spelled.
func exception(status int, kind, message string) wording {
	b := append([]byte(`{"__type":`), appendString(nil, kind)...)
	b = append(b, `,"message":`...)
	return wording{status, string(append(appendString(b, message), '}'))}
}

// converseFailures are Bedrock's words. A form that is another provider's is taken
// from that one's table.
var converseFailures = failureTable{
	"server_error":    {"": exception(500, "InternalServerException", "The system encountered an unexpected error during processing. Try your request again.")},
	"bad_gateway":     chatFailures["bad_gateway"],
	"gateway_timeout": chatFailures["gateway_timeout"],
	"unavailable":     {"": exception(503, "ServiceUnavailableException", "Bedrock is unable to process your request.")},
	"overloaded":      {"": exception(429, "ModelNotReadyException", "The model is not ready for inference. Wait and try your request again.")},
	"throttled":       {"": exception(429, "ThrottlingException", "Too many tokens, please wait before trying again.")},
	"auth":            {"": exception(403, "UnrecognizedClientException", "The security token included in the request is invalid.")},
	"forbidden":       {"": exception(403, "AccessDeniedException", "You don't have access to the model with the specified model ID.")},
	"model_missing":   {"": exception(400, "ValidationException", "The provided model identifier is invalid.")},
	"timeout":         {"": exception(408, "ModelTimeoutException", "Model processing time exceeded.")},
	"invalid":         {"": exception(400, "ValidationException", "The value at inferenceConfig.temperature failed to satisfy constraint: Member must be less than or equal to 1")},
	"too_large":       {"": exception(413, "ValidationException", "Request body is too large.")},
	"plain":           {"": {400, `{"message":"The request failed."}`}},
	"redirect":        {"": {302, ""}},
	"context": {
		"":      exception(400, "ValidationException", "Input is too long for requested model."),
		"limit": exception(400, "ValidationException", "The model returned the following errors: input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
	},
	"policy": {"": exception(400, "ValidationException", "Output blocked by content filtering policy")},
	"funding": {
		"": exception(403, "AccessDeniedException", "Model access is denied due to INVALID_PAYMENT_INSTRUMENT:A valid payment instrument must be provided."),
	},
}

func (converse) wording(f failure) wording {
	if w, ok := converseFailures[f.kind][f.form]; ok {
		return w
	}
	return chatFailures[f.kind][f.form]
}

// stated is what the body of a wording says.
func (w wording) stated() (said struct {
	Type    string `json:"__type"`
	Message string `json:"message"`
},
) {
	_ = json.Unmarshal([]byte(w.body), &said) // a web page states nothing
	return said
}

func (c converse) failure(f failure, call callFacts) (int, []byte) {
	w := c.wording(f)
	status := w.status
	if f.status != 0 {
		status = f.status
	}
	body := []byte(strings.ReplaceAll(w.body, "$MODEL", safeName(call.model)))
	if said := w.stated(); said.Type != "" {
		body = append(appendString([]byte(`{"message":`), said.Message), '}')
	}
	if f.relay {
		body = relayed(status, body)
	}
	return status, body
}

// failureHeader names the exception.
func (c converse) failureHeader(f failure) http.Header {
	said := c.wording(f).stated()
	if said.Type == "" {
		return nil
	}
	return http.Header{"X-Amzn-Errortype": {said.Type + ":http://internal.amazon.com/coral/com.amazon.bedrock/"}}
}

// errorEvent is an exception frame, whose name begins with a small letter. What is no
// exception of Bedrock's comes as the one that stands for all others; bare, there is
// no other shape.
func (c converse) errorEvent(f failure, _ *answer, _ bool) event {
	if f.kind == finishKind {
		return event{name: "messageStop", data: []byte(`{"stopReason":"malformed_model_output"}`)}
	}
	said := c.wording(f).stated()
	if said.Type == "" {
		said.Type, said.Message = "ModelStreamErrorException", "The model returned an error."
	}
	name := strings.ToLower(said.Type[:1]) + said.Type[1:]
	return event{name: name, data: append(appendString([]byte(`{"message":`), said.Message), '}')}
}

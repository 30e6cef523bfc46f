package responses

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// thought runs one turn whose answer is sealed reasoning, a call and a text, and gives
// the response.
func (s *shelf) thought(t testing.TB, o Owner, body string) []byte {
	t.Helper()
	in := s.in(o)
	req, err := in.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	out, err := in.Whole(req, &neutral.Answer{Dialect: neutral.Generate, Stop: neutral.StopToolCalls, Output: []neutral.Part{
		{Kind: neutral.ReasoningPart, Text: "hm", Opaque: neutral.OpaqueReasoning{Issuer: neutral.Generate, Signature: "sig"}},
		{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: "c1", Name: "f", Arguments: "{}"}},
		{Kind: neutral.TextPart, Text: "ONE"},
	}}, dialect.Meta{RequestID: "1", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A client that believes its answers stored (the Vercel AI SDK does by itself) sends
// their items back by id alone. They are written out where they are kept, and the
// request then needs nobody who has stored anything.
//
// Rules: K4, K6.
func TestReferencesToKeptItemsAreWrittenOut_K4_K6(t *testing.T) {
	s := newShelf()
	response := s.thought(t, alice, `{"model":"m","input":"one"}`)
	id := func(i string) string { return gjson.GetBytes(response, "output."+i+".id").Str }
	body := `{"model":"m","input":[{"role":"user","content":"one"}, {"type":"item_reference","id":"` + id("0") + `"},` +
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"2"},` +
		`{"id":"` + id("2") + `","type":"item_reference"},{"role":"user","content":"say item_reference"}],"store":true}`
	req, err := s.in(alice).Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if len(req.Features) > 0 || req.Parts.Messages != 6 || !req.Sealed {
		t.Errorf("features %v, %d messages, sealed %t", req.Features, req.Parts.Messages, req.Sealed)
	}
	items := gjson.GetBytes(req.Raw, "input").Array()
	if seal := opaque(items[1]); seal.Issuer != neutral.Generate || seal.Signature != "sig" {
		t.Errorf("the reasoning is %s", items[1])
	}
	if text := items[4]; text.Get("content.0.text").Str != "ONE" || text.Get("id").Exists() || text.Get("role").Str != "assistant" {
		t.Errorf("the text is %s", text)
	}
	if items[5].Raw != `{"role":"user","content":"say item_reference"}` || !gjson.GetBytes(req.Raw, "store").Bool() {
		t.Errorf("what is no reference has changed: %s", req.Raw)
	}
}

// What is not kept here may be kept by a provider: it is asked for by its id still.
//
// Rules: K6.
func TestReferencesToOtherItemsStay_K6(t *testing.T) {
	s := newShelf()
	response := s.thought(t, alice, `{"model":"m","input":"one"}`)
	kept := `{"model":"m","input":[{"type":"item_reference","id":"` + gjson.GetBytes(response, "output.2.id").Str + `"}]}`
	stays := func(name string, in Inbound, body string) {
		t.Helper()
		req, err := in.Parse([]byte(body))
		if err != nil || string(req.Raw) != body || !slices.Contains(req.Features, dialect.StoredState) {
			t.Errorf("%s: %+v, %v", name, req, err)
		}
	}
	stays("unknown", s.in(alice), `{"model":"m","input":[{"type":"item_reference","id":"msg_nope"}]}`)
	stays("another owner's", s.in(Owner{"acme", "bob"}), kept)
	stays("nothing is kept", Inbound{Owner: alice}, kept)
	if _, err := s.Delete(alice, gjson.GetBytes(response, "id").Str); err != nil {
		t.Fatal(err)
	}
	stays("deleted", s.in(alice), kept)
	if len(s.items) != 0 {
		t.Errorf("a deleted response leaves %d items", len(s.items))
	}
}

// Reasoning that nobody can read is nothing to send.
//
// Rules: K4.
func TestAReferenceToUnsealedReasoningIsDropped_K4(t *testing.T) {
	s := newShelf()
	s.put(&stored{key: storeKey{alice, "resp_1"}, response: []byte(`{"output":[{"id":"rs_1","type":"reasoning","summary":[]}]}`)})
	req, err := s.in(alice).Parse([]byte(`{"model":"m","input":[{"type":"item_reference","id":"rs_1"},{"role":"user","content":"x"}]}`))
	if err != nil || strings.Contains(string(req.Raw), "rs_1") || req.Parts.Messages != 1 {
		t.Errorf("%+v, %v", req, err)
	}
}

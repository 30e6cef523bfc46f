package gemini_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/gemini"
	"github.com/sluice-gateway/sluice/adapters/dialect/messages"
	"github.com/sluice-gateway/sluice/adapters/dialect/responses"
)

// A caller of another dialect keeps what it got and sends it back with the tool's
// result: the signature is on the call again, in every dialect that can carry one (K4).
func TestSignaturesThroughACallersHistory_K4(t *testing.T) {
	body, err := os.ReadFile("testdata/call.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		inbound dialect.Inbound
		first   string
		next    func(answer string) string
	}{
		{"messages", messages.Inbound{}, `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"q"}]}`, func(answer string) string {
			return `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":` + gjson.Get(answer, "content").Raw + `},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":` + gjson.Get(answer, `content.#(type=="tool_use").id`).Raw + `,"content":"sun"}]}]}`
		}},
		{"responses", responses.Inbound{}, `{"model":"m","input":"q"}`, func(answer string) string {
			items := strings.Trim(gjson.Get(answer, "output").Raw, "[]")
			return `{"model":"m","input":[{"role":"user","content":"q"},` + items +
				`,{"type":"function_call_output","call_id":` + gjson.Get(answer, `output.#(type=="function_call").call_id`).Raw + `,"output":"sun"}]}`
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := tt.inbound.Parse([]byte(tt.first))
			if err != nil {
				t.Fatal(err)
			}
			answer, f := gemini.Outbound{}.DecodeWhole(req, body)
			if f != nil {
				t.Fatal(f)
			}
			out, err := tt.inbound.Whole(req, &answer, dialect.Meta{RequestID: "0190-r", Model: "m"})
			if err != nil || !json.Valid(out) {
				t.Fatalf("%v: %s", err, out)
			}
			second, err := tt.inbound.Parse([]byte(tt.next(string(out))))
			if err != nil {
				t.Fatalf("%v in %s", err, tt.next(string(out)))
			}
			up, err := gemini.Outbound{}.Build(second, dialect.Target{BaseURL: "https://generativelanguage.googleapis.com", UpstreamModel: "gemini-3-pro"})
			if err != nil {
				t.Fatal(err)
			}
			contents := gjson.GetBytes(up.Body, "contents")
			if got := contents.Get(`1.parts.#(functionCall.name=="weather").thoughtSignature`).Str; got != "T05F" {
				t.Errorf("signature %q in %s\nafter %s", got, up.Body, out)
			}
			if got := contents.Get("2.parts.0.functionResponse").Raw; got != `{"name":"weather","response":{"output":"sun"}}` {
				t.Errorf("result %s in %s", got, up.Body)
			}
		})
	}
}

package responses_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect/responses"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// bench is a gateway whose callers speak Responses. A rung is a protocol and a
// fake-provider model name.
func bench(t *testing.T, rungs ...[2]string) *gatewaytest.Bench {
	t.Helper()
	var names []string
	for _, r := range rungs {
		names = append(names, r[1])
	}
	b := gatewaytest.New(t, names...)
	for i, r := range rungs {
		p := &b.Objects.Providers[i]
		if p.Protocol = catalog.Protocol(r[0]); p.Protocol == catalog.Anthropic {
			// Its SDK takes an address without the version.
			p.BaseURL = strings.TrimSuffix(p.BaseURL, "/v1")
		}
	}
	return b
}

func ask(t *testing.T, b *gatewaytest.Bench, in responses.Inbound, body string) *gateway.Outcome {
	t.Helper()
	return b.Serve(t.Context(), gateway.Incoming{
		Dialect: in, Body: []byte(body), Key: b.Key, Snapshot: b.Snapshot(), Controls: b.Controls, At: time.Now(),
	})
}

// sent is a stream to its end: the names of its events, pieces once, and its last.
func sent(t *testing.T, out *gateway.Outcome) (names string, last gjson.Result) {
	t.Helper()
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	var c gatewaytest.Collector
	if err := out.Stream(context.WithoutCancel(t.Context()), &c); err != nil {
		t.Fatal(err)
	}
	var list []string
	for block := range strings.SplitSeq(c.Sent.String(), "\n\n") {
		name, data, ok := strings.Cut(block, "\ndata: ")
		if !ok {
			continue
		}
		name = strings.TrimPrefix(name, "event: response.")
		if len(list) == 0 || list[len(list)-1] != name {
			list = append(list, name)
		}
		last = gjson.Parse(data)
	}
	return strings.Join(list, " "), last
}

const (
	sealed  = `{"model":"m","max_output_tokens":50,"input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},{"role":"user","content":"on"}]`
	text    = "output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done"
	textRun = "created in_progress " + text + " completed"
)

// Reasoning that the provider cannot read is left out, whether it says so by its
// status or inside a stream, and never twice.
//
// Rules: K5.
func TestSealedReasoningIsRepaired_K5(t *testing.T) {
	for name, tt := range map[string]struct {
		model string
		want  []string
	}{
		"by its status":   {"fake-400:seal,ok", []string{"first", "repair"}},
		"inside a stream": {"fake-error:0:invalid:seal,ok", []string{"first", "repair"}},
		"before created":  {"fake-bare-error:first:invalid:seal,ok", []string{"first", "repair"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := bench(t, [2]string{"openai-responses", tt.model})
			names, last := sent(t, ask(t, b, responses.Inbound{}, sealed+`,"stream":true}`))
			if names != textRun || last.Get("response.model").Str != "m" {
				t.Errorf("%s, then %s", names, last)
			}
			if diff := cmp.Diff(tt.want, attempts(t, b)); diff != "" {
				t.Error(diff)
			}
		})
	}
	b := bench(t, [2]string{"openai-responses", "fake-400:seal"}, [2]string{"openai-responses", "fake-ok"})
	out := ask(t, b, responses.Inbound{}, sealed+`}`)
	if out.Err == nil || out.Err.Code != apierror.InvalidRequest || out.Err.Relay == nil || out.Err.Relay.Code != "invalid_encrypted_content" {
		t.Errorf("error = %+v", out.Err)
	}
	if diff := cmp.Diff([]string{"first", "repair"}, attempts(t, b)); diff != "" {
		t.Error(diff)
	}
}

// attempts are the kinds of the attempts that were made.
func attempts(t *testing.T, b *gatewaytest.Bench) []string {
	t.Helper()
	var kinds []string
	for _, move := range b.Log.Moves(t) {
		if kind, ok := strings.CutPrefix(move, "attempt_reserved "); ok {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// A failure after response.created and before any output is none that the caller
// sees: it gets one response.created, of the answer that it gets.
//
// Rules: S1, S5.
func TestLifecycleEventsAreNoCommit_S1_S5(t *testing.T) {
	for _, protocol := range []string{"openai-responses", "openai", "anthropic"} {
		t.Run(protocol, func(t *testing.T) {
			b := bench(t, [2]string{"openai-responses", "fake-error:0:funding"}, [2]string{protocol, "fake-words:5"})
			names, last := sent(t, ask(t, b, responses.Inbound{}, `{"model":"m","max_output_tokens":50,"input":"hi","stream":true}`))
			if names != textRun || last.Get("response.usage.output_tokens").Int() != 5 {
				t.Errorf("%s, then %s", names, last)
			}
			if diff := cmp.Diff([]string{"first", "failover"}, attempts(t, b)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever breaks after the first output, and wherever it came from: the stream ends
// in response.failed.
//
// Rules: S3, P11.
func TestBrokenStreamsEndInFailed_S3_P11(t *testing.T) {
	for _, rung := range [][2]string{{"openai-responses", "fake-cut:2"}, {"openai-responses", "fake-error:2"}, {"openai", "fake-cut:2"}, {"openai", "fake-malformed:2"}} {
		b := bench(t, rung)
		names, last := sent(t, ask(t, b, responses.Inbound{}, `{"model":"m","max_output_tokens":50,"input":"hi","stream":true}`))
		if !strings.HasSuffix(names, " output_text.delta failed") || last.Get("response.error.code").Str != "upstream_truncated" || last.Get("response.status").Str != "failed" {
			t.Errorf("%v: %s, then %s", rung, names, last)
		}
	}
}

// A conversation that is stored here goes on at whatever destination, and costs
// nothing but its turns.
//
// Rules: K6.
func TestStoredConversationsGoOnAnywhere_K6(t *testing.T) {
	b := bench(t, [2]string{"openai", "fake-ok"})
	in := responses.Inbound{Store: responses.NewStore(time.Now), Owner: responses.Owner{Tenant: "acme", Key: "key1"}}
	first := ask(t, b, in, `{"model":"m","max_output_tokens":50,"input":"hi"}`)
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	id := gjson.GetBytes(first.Whole, "id").Str
	names, last := sent(t, ask(t, b, in, `{"model":"m","max_output_tokens":50,"input":"and?","stream":true,"previous_response_id":"`+id+`"}`))
	if said := last.Get("response.output.0.content.0.text").Str; names != textRun || !strings.Contains(said, "messages=3") || last.Get("response.previous_response_id").Str != id {
		t.Errorf("%s, then %s", names, last)
	}
	if stored, gone := in.Store.Get(in.Owner, last.Get("response.id").Str); gone != nil || string(stored) != last.Get("response").Raw {
		t.Errorf("stored %s, %v", stored, gone)
	}
	out := ask(t, b, in, `{"model":"m","input":"x","previous_response_id":"resp_unknown"}`)
	if out.Err == nil || out.Err.HTTPStatus() != 404 || out.Err.Param != "previous_response_id" {
		t.Errorf("unknown: %+v", out.Err)
	}
	if n := b.Provider.Ledger().Total; n != 2 {
		t.Errorf("%d calls for 2 turns", n)
	}
}

// What only this dialect can say goes past the others (P5).
func TestOwnToolsStayWithTheirDialect_P5(t *testing.T) {
	b := bench(t, [2]string{"openai", "fake-ok"}, [2]string{"openai-responses", "fake-ok"})
	out := ask(t, b, responses.Inbound{}, `{"model":"m","max_output_tokens":50,"input":"hi","tools":[{"type":"web_search"}]}`)
	if out.Err != nil || out.Facts.Provider != "p1" {
		t.Errorf("%+v, %v", out.Facts, out.Err)
	}
}

// Reasoning goes back first to the route that sealed it, for the caller who was given
// it, streaming or whole; no other route is sent it.
//
// Rules: K4.
func TestReasoningGoesBackToItsIssuer_K4(t *testing.T) {
	for _, tt := range []struct {
		issuer string
		stream bool
	}{{"openai-responses", false}, {"openai-responses", true}, {"anthropic", true}} {
		stream := tt.stream
		b := bench(t, [2]string{"openai-responses", "fake-500,500,ok"}, [2]string{tt.issuer, "fake-reasoning:2"})
		member := `,"max_output_tokens":50`
		if stream {
			member += `,"stream":true`
		}
		out := ask(t, b, responses.Inbound{}, `{"model":"m","input":"hi"`+member+`}`)
		response := gjson.ParseBytes(out.Whole)
		if stream {
			_, last := sent(t, out)
			response = last.Get("response")
		}
		reasoning := response.Get("output.0")
		if out.Facts.Provider != "p1" || reasoning.Get("encrypted_content").Str == "" {
			t.Fatalf("%+v answered %s", out.Facts, response)
		}
		turn := `{"model":"m","max_output_tokens":50,"input":[{"role":"user","content":"hi"},` + reasoning.Raw + `,{"role":"user","content":"and?"}]}`
		if again := ask(t, b, responses.Inbound{}, turn); again.Err != nil || again.Facts.Provider != "p1" || again.Facts.FallbackDepth != 0 {
			t.Errorf("%+v: the issuer was not first: %+v, %v", tt, again.Facts, again.Err)
		}
		b.Key = &catalog.Key{ID: "key2", Tenant: "acme"}
		if other := ask(t, b, responses.Inbound{}, turn); other.Err != nil || other.Facts.Provider != "p0" {
			t.Errorf("%+v: another caller's seal steered: %+v, %v", tt, other.Facts, other.Err)
		}
	}
}

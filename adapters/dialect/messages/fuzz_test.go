package messages

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// FuzzStream: whatever comes after message_start, nothing panics (P9), a failure is a
// typed one, and what is sent is JSON, whichever way it is written.
func FuzzStream(f *testing.F) {
	for _, file := range recorded(f, ".chunks.txt") {
		lines := replies(f, file)[0]
		f.Add([]byte(lines[1]), []byte(lines[min(3, len(lines)-1)]))
	}
	f.Add([]byte(openTool), []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":3}}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		if bytes.ContainsAny(one, "\r\n") || bytes.ContainsAny(two, "\r\n") {
			return
		}
		body := frame(begin, string(one), string(two), closeText, endTurn, finished)
		for _, foreign := range []bool{false, true} {
			dec, enc := Outbound{}.NewStream(asking(), bytes.NewReader([]byte(body))), Inbound{}.NewStream(asking(), meta)
			agg := Outbound{}.NewAggregate(asked())
			var out []byte
			var c neutral.Chunk
			err := dec.Next(&c)
			for ; err == nil; err = dec.Next(&c) {
				if !foreign && agg.Add(&c) != nil {
					return
				}
				if foreign {
					c.Dialect = neutral.Converse
				}
				if out, err = enc.Encode(out, &c); err != nil {
					return // said to be what cannot be said
				}
			}
			if _, ok := errors.AsType[*failure.Failure](err); !ok && !errors.Is(err, io.EOF) {
				t.Fatalf("untyped error %v", err)
			}
			for _, s := range readSent(enc.End(out)) {
				if !gjson.Valid(s.Data) {
					t.Fatalf("not JSON: %s", s.Data)
				}
			}
			if _, err := agg.Answer(); err != nil {
				if _, ok := errors.AsType[*failure.Failure](err); !ok {
					t.Fatalf("untyped error %v", err)
				}
			}
		}
	})
}

func FuzzWhole(f *testing.F) {
	for _, file := range recorded(f, ".json") {
		if body, err := os.ReadFile(file); err == nil {
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, failed := Outbound{}.DecodeWhole(asked(), body)
		if failed != nil {
			return
		}
		for _, from := range []neutral.Dialect{neutral.Messages, neutral.Converse} {
			answer.Dialect = from
			out, err := Inbound{}.Whole(asking(), &answer, meta)
			if err == nil && !gjson.ValidBytes(out) {
				t.Fatalf("not JSON: %s", out)
			}
		}
	})
}

func FuzzClassify(f *testing.F) {
	f.Add(429, []byte(refusal("rate_limit_error", "x")), "1s")
	f.Add(400, []byte(`{"error":{"message":"{\"error\":{}}"}}`), "Sun, 29 Nov 2026 12:00:30 GMT")
	f.Fuzz(func(t *testing.T, status int, body []byte, after string) {
		got := Outbound{}.Classify(dialect.Refusal{Status: status, Body: body, Header: map[string][]string{"Retry-After": {after}}})
		if !slices.Contains(failure.Classes(), got.Class) || got.Retry.After < 0 || got.Retry.After > maxRetryAfter {
			t.Fatalf("failure = %+v", got)
		}
		if got.Relay != nil && (len(got.Relay.Message) > 3*dialect.MaxRelay || got.Relay.Status < 400 || got.Relay.Status > 499) {
			t.Fatalf("relay = %+v", got.Relay)
		}
	})
}

// FuzzParse: a body that is accepted can be built from, its texts read, and what
// another dialect would be asked from it decoded.
func FuzzParse(f *testing.F) {
	f.Add([]byte(agent))
	f.Add([]byte(`{"model":"m\u0065","messages":[{"role":"assistant","content":[{"type":"thinking"},{"type":"thinking","signature":"S"}]}],"thinking":{"type":"enabled"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := Inbound{}.Parse(body)
		if err != nil {
			if _, ok := errors.AsType[*dialect.InvalidError](err); !ok {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		for range req.Texts() {
		}
		for _, stream := range []bool{false, true} {
			target := dialect.Target{BaseURL: "https://p.test", UpstreamModel: "up", Stream: stream, WithoutSeals: stream}
			up, err := Outbound{}.Build(req, target)
			if err != nil {
				t.Fatal(err)
			}
			doc := gjson.ParseBytes(up.Body)
			if !gjson.ValidBytes(up.Body) || doc.Get("model").Str != "up" || doc.Get("stream").Bool() != stream {
				t.Fatalf("built %s", up.Body)
			}
			n, err := req.Neutral()
			if err != nil {
				return
			}
			up, err = Outbound{}.Build(foreign(n), target)
			if err == nil && !gjson.ValidBytes(up.Body) {
				t.Fatalf("rendered %s", up.Body)
			}
		}
	})
}

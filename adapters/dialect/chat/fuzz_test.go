package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// seeds adds the recorded frames and answers.
func seeds(f *testing.F) {
	f.Helper()
	for _, file := range recorded(f, ".chunks.txt") {
		lines := readLines(f, file)
		for _, at := range []int{0, 1, len(lines) / 2, len(lines) - 1} {
			f.Add([]byte(lines[min(at, len(lines)-1)]))
		}
	}
	for _, s := range []string{
		`{"error":null,"choices":[{"delta":{"tool_calls":[{}]},"finish_reason":""}]}`,
		`{"choices":[{"index":3,"delta":{"tool_calls":[{"function":{"arguments":{"a":1}}}]}}],"usage":{}}`,
	} {
		f.Add([]byte(s))
	}
}

// FuzzChunk: whatever a frame holds, nothing panics (P9), a failure is a typed one,
// and what is sent on is JSON without an error member.
func FuzzChunk(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, payload []byte) {
		if bytes.ContainsAny(payload, "\r\n") {
			return
		}
		stream := frame(string(payload), string(payload), stopped)
		dec, enc := Outbound{}.NewStream(asking(false), bytes.NewReader([]byte(stream))), Inbound{}.NewStream(asking(false), meta)
		agg := Outbound{}.NewAggregate(asking(false))
		for {
			var c neutral.Chunk
			err := dec.Next(&c)
			if err != nil {
				if _, ok := errors.AsType[*failure.Failure](err); !ok && !errors.Is(err, io.EOF) {
					t.Fatalf("untyped error %v", err)
				}
				break
			}
			out, err := enc.Encode(nil, &c)
			if err != nil {
				t.Fatal(err)
			}
			if len(out) > 0 {
				checkSent(t, out)
			}
			if err := agg.Add(&c); err != nil {
				return
			}
		}
		if answer, err := agg.Answer(); err != nil || !json.Valid(answer.Raw) {
			t.Fatalf("%v: %s", err, answer.Raw)
		}
	})
}

func checkSent(t *testing.T, out []byte) {
	t.Helper()
	data := bytes.TrimSuffix(bytes.TrimPrefix(out, []byte("data: ")), []byte("\n\n"))
	if !gjson.ValidBytes(data) {
		t.Fatalf("not JSON: %s", data)
	}
	doc := gjson.ParseBytes(data)
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "error", "usage":
			t.Fatalf("%s was sent: %s", key.Str, data)
		case "model":
			if v.Str != servedAs {
				t.Fatalf("model was sent as %s", v.Raw)
			}
		}
		return true
	})
}

func FuzzWhole(f *testing.F) {
	seeds(f)
	f.Add([]byte(`{"choices":[{"message":{"content":[{"type":"thinking","thinking":"x"}]},"finish_reason":"stop"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, failed := Outbound{}.DecodeWhole(asking(false), body)
		if failed != nil {
			return
		}
		out, err := Inbound{}.Whole(asking(false), &answer, meta)
		if err != nil || !gjson.ValidBytes(out) {
			t.Fatalf("%v: %s", err, out)
		}
	})
}

func FuzzClassify(f *testing.F) {
	f.Add(429, []byte(`{"error":{"message":"try again in 5s","metadata":{"raw":"{\"error\":{}}"}}}`), "1s")
	f.Add(400, []byte(`[{"error":{"details":[{"retryDelay":"1s"}]}}]`), "Sun, 29 Nov 2026 12:00:30 GMT")
	f.Fuzz(func(t *testing.T, status int, body []byte, after string) {
		got := Outbound{}.Classify(dialect.Refusal{Status: status, Body: body, Header: map[string][]string{"Retry-After": {after}}})
		if !validClass(got.Class) || got.Retry.After < 0 || got.Retry.After > maxRetryAfter {
			t.Fatalf("failure = %+v", got)
		}
		if got.Relay != nil && (len(got.Relay.Message) > 3*dialect.MaxRelay || got.Relay.Status < 400 || got.Relay.Status > 499) {
			t.Fatalf("relay = %+v", got.Relay)
		}
	})
}

func validClass(c failure.Class) bool {
	for _, known := range failure.Classes() {
		if c == known {
			return true
		}
	}
	return false
}

// FuzzParse: a body that is accepted can be built from, and its texts read.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{}}]}],"tools":[{}],"stream_options":{}}`))
	f.Add([]byte(`{"stream_options":null,"model":"m\u0065","messages":[{"role":"user","content":"\ud83e"}]}`))
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
			up, err := Outbound{}.Build(req, dialect.Target{BaseURL: "https://p.test", UpstreamModel: "up", Stream: stream})
			if err != nil {
				t.Fatal(err)
			}
			doc := gjson.ParseBytes(up.Body)
			if !gjson.ValidBytes(up.Body) || doc.Get("model").Str != "up" || doc.Get("stream").Bool() != stream {
				t.Fatalf("built %s", up.Body)
			}
			if doc.Get("stream_options.include_usage").Bool() != stream {
				t.Fatalf("usage not asked for as it should be: %s", up.Body)
			}
		}
	})
}

// Whatever a caller sends, another dialect is asked something or the caller is told
// which field it was (P9).
func FuzzNeutral(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(`{"model":"m","messages":[{"role":"tool","content":null,"tool_calls":null}],"stop":null,"tools":[1]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := Inbound{}.Parse(body)
		if err != nil {
			return
		}
		n, err := req.Neutral()
		if err != nil {
			if _, ok := errors.AsType[*dialect.InvalidError](err); !ok {
				t.Fatalf("%v is no word to a caller", err)
			}
			return
		}
		out, err := writeNeutral(n, dialect.Target{UpstreamModel: "m", Stream: n.Stream}, &compatible, 0)
		if err != nil {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%s becomes %s", body, out)
		}
	})
}

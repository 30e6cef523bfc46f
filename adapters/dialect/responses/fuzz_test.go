package responses

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// FuzzEvent: whatever an event holds, nothing panics (P9), a failure is a typed one,
// and what is sent on is JSON under the caller's name for the model.
func FuzzEvent(f *testing.F) {
	for _, r := range recorded(f) {
		for _, at := range []int{0, 1, len(r.lines) / 2, len(r.lines) - 1} {
			if line := r.lines[min(at, len(r.lines)-1)]; len(line) < 4096 {
				f.Add([]byte(line))
			}
		}
	}
	for _, s := range []string{call, half, incomplete("x"), gaveUp("invalid_encrypted_content"), `{"type":"response.completed","response":{"output":[{"type":"reasoning","summary":[7,{"text":"x"}]}]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if bytes.ContainsAny(payload, "\r\n") {
			return
		}
		stream := framed(call) + "data: " + string(payload) + "\n\ndata: " + string(payload) + "\n\n" + framed(completed)
		dec, enc := Outbound{}.NewStream(asking(), bytes.NewReader([]byte(stream))), Inbound{}.NewStream(asking(), meta)
		agg := Outbound{}.NewAggregate(asking())
		for {
			var c neutral.Chunk
			if err := dec.Next(&c); err != nil {
				if _, ok := errors.AsType[*failure.Failure](err); !ok && !errors.Is(err, io.EOF) {
					t.Fatalf("untyped error %v", err)
				}
				return
			}
			out, err := enc.Encode(nil, &c)
			if err != nil {
				t.Fatal(err)
			}
			_, data, ok := bytes.Cut(out, []byte("\ndata: "))
			if !ok || !gjson.ValidBytes(bytes.TrimSpace(data)) {
				t.Fatalf("sent %q", out)
			}
			if err := agg.Add(&c); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzWhole(f *testing.F) {
	for _, body := range wholes(f) {
		if len(body) < 4096 {
			f.Add([]byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, req := range []*dialect.Request{asking(), fromElsewhere()} {
			answer, failed := Outbound{}.DecodeWhole(req, body)
			if failed != nil {
				continue
			}
			out, err := Inbound{}.Whole(asking(), &answer, meta)
			if err != nil || !gjson.ValidBytes(out) {
				t.Fatalf("%v: %s", err, out)
			}
		}
	})
}

func FuzzClassify(f *testing.F) {
	f.Add(400, []byte(`{"error":{"code":"invalid_encrypted_content"}}`))
	f.Add(200, []byte(`{"type":"error","code":7,"param":[]}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		got := Outbound{}.Classify(refusal(status, string(body)))
		if failure.Of(got.Class) == (failure.Traits{}) && got.Class != failure.InvalidRequest {
			t.Fatalf("failure = %+v", got)
		}
		if got.Relay != nil && (got.Relay.Status < 400 || got.Relay.Status > 499) {
			t.Fatalf("relay = %+v", got.Relay)
		}
	})
}

// FuzzParse: a body that is accepted can be built from, read in other words or be
// refused with its field, and what is written from those words is accepted again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(`{"model":"m\u0065","input":[{"role":"user","content":"\ud83e"},{"type":"reasoning","encrypted_content":"sluice.seal.v1.e30"}],"stream_options":{}}`))
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
		for _, target := range []dialect.Target{{}, {Stream: true}, {WithoutSeals: true}} {
			doc := gjson.Parse(build(t, req, target))
			if !gjson.Valid(doc.Raw) || doc.Get("model").Str != "up" || doc.Get("stream").Bool() != target.Stream {
				t.Fatalf("built %s", doc.Raw)
			}
		}
		n, err := req.Neutral()
		if err != nil {
			if _, ok := errors.AsType[*dialect.InvalidError](err); !ok {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if written := build(t, asked(n), dialect.Target{}); !gjson.Valid(written) {
			t.Fatalf("wrote %s", written)
		}
		if echo := newReply(req, meta); !gjson.ValidBytes(append(append([]byte("{"), echo.echoes()...), '}')) {
			t.Fatalf("echoes %s", echo.echoes())
		}
	})
}

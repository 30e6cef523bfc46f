package gemini

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

func seeds(f *testing.F) {
	f.Helper()
	for _, file := range recordedFiles(f, ".chunks.txt") {
		lines := readLines(f, file)
		for _, at := range []int{0, 1, len(lines) - 1} {
			f.Add([]byte(lines[at]))
		}
	}
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a[0]['b']","numberValue":1e9}]}},{"text":null}]},"finishReason":"MAX_TOKENS"}],"usageMetadata":{"thoughtsTokenCount":1.0}}`))
	f.Add([]byte(`[{"error":{}}]`))
}

// FuzzChunk: whatever a frame holds, nothing panics (P9), a failure is a typed one, and
// the calls that come of it are dense and have arguments that are JSON.
func FuzzChunk(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, payload []byte) {
		if bytes.ContainsAny(payload, "\r\n") {
			return
		}
		h := decode(t, bytes.NewReader([]byte(frame(string(payload), string(payload), chunk(stopped)))))
		if _, ok := errors.AsType[*failure.Failure](h.err); !ok && !errors.Is(h.err, io.EOF) {
			t.Fatalf("untyped error %v", h.err)
		}
		next := 0
		for _, e := range h.events {
			switch e.Kind {
			case neutral.ToolCallStart:
				if e.Index != next || !plainID(e.Tool.ID) {
					t.Fatalf("call %+v, want index %d", e, next)
				}
				next++
			case neutral.ToolCallDelta:
				if !gjson.ValidBytes(e.Text) {
					t.Fatalf("arguments %s", e.Text)
				}
			}
		}
	})
}

func FuzzWhole(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, failed := Outbound{}.DecodeWhole(nil, body)
		if failed == nil && answer.Empty {
			t.Fatalf("an empty answer is said to be one: %s", body)
		}
	})
}

func FuzzClassify(f *testing.F) {
	f.Add(429, []byte(errorBody("429", "RESOURCE_EXHAUSTED", "please retry in 5s", `{"retryDelay":"1s"}`)), "1s")
	f.Add(400, []byte(`[{"error":"x"}]`), "Sun, 29 Nov 2026 12:00:30 GMT")
	f.Fuzz(func(t *testing.T, status int, body []byte, after string) {
		got := Outbound{}.Classify(dialect.Refusal{Status: status, Body: body, Header: http.Header{"Retry-After": {after}}, Now: time.Unix(0, 0)})
		if !slices.Contains(failure.Classes(), got.Class) || got.Retry.After < 0 || got.Retry.After > maxRetryAfter {
			t.Fatalf("failure = %+v", got)
		}
		if got.Relay != nil && (len(got.Relay.Message) > 3*dialect.MaxRelay || got.Relay.Status < 400 || got.Relay.Status > 499) {
			t.Fatalf("relay = %+v", got.Relay)
		}
	})
}

package converse

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// FuzzStream: whatever a body holds, nothing panics (P9) and a failure is a typed one.
func FuzzStream(f *testing.F) {
	for _, file := range recorded(f, ".chunks.txt") {
		f.Add(stream(f, readLines(f, file)...))
	}
	f.Add(exceptionFrame(f, "throttlingException", "x"))
	f.Fuzz(func(t *testing.T, body []byte) { checkStream(t, body) })
}

// FuzzEvent reaches what is behind the checksums.
func FuzzEvent(f *testing.F) {
	for _, name := range []string{"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"} {
		f.Add(name, []byte(`{"contentBlockIndex":0,"start":{"toolUse":{}},"delta":{"toolUse":{"input":"{"}},"stopReason":"tool_use","usage":{"cacheDetails":[{}]}}`))
		f.Add(name, []byte(`{"`+name+`":{"delta":{"reasoningContent":{"text":"\ud83d","signature":"x"}}}}`))
	}
	f.Fuzz(func(t *testing.T, name string, payload []byte) {
		if len(name) > 255 {
			return
		}
		body := stream(t, began, called)
		body = append(body, event(t, name, string(payload))...)
		checkStream(t, append(body, stream(t, stopped)...))
	})
}

func checkStream(t *testing.T, body []byte) {
	t.Helper()
	dec, agg := Outbound{}.NewStream(nil, bytes.NewReader(body)), Outbound{}.NewAggregate(nil)
	joins := true
	for {
		dec.Ready()
		var c neutral.Chunk
		err := dec.Next(&c)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if _, ok := errors.AsType[*failure.Failure](err); !ok {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		joins = joins && agg.Add(&c) == nil
	}
	if joins {
		if _, err := agg.Answer(); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzWhole(f *testing.F) {
	f.Add([]byte(`{"output":{"message":{"content":[{"toolUse":{"input":[]}},{"citationsContent":{"content":[{"text":"x"}]}}]}},"stopReason":"end_turn"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, failed := Outbound{}.DecodeWhole(nil, body)
		if failed == nil && (answer.Empty || len(answer.Output) == 0 && answer.Stop == neutral.StopEnd) {
			t.Fatalf("answer = %+v", answer)
		}
	})
}

func FuzzClassify(f *testing.F) {
	f.Add(400, []byte(`{"__type":"a#ValidationException","message":"prompt is too long"}`), "X:y", "1s")
	f.Fuzz(func(t *testing.T, status int, body []byte, kind, after string) {
		got := Outbound{}.Classify(dialect.Refusal{Status: status, Body: body, Header: map[string][]string{"X-Amzn-Errortype": {kind}, "Retry-After": {after}}})
		if !slices.Contains(failure.Classes(), got.Class) || got.Retry.After < 0 || got.Retry.After > maxRetryAfter {
			t.Fatalf("failure = %+v", got)
		}
		if got.Relay != nil && (len(got.Relay.Message) > 3*dialect.MaxRelay || got.Relay.Status < 400 || got.Relay.Status > 499) {
			t.Fatalf("relay = %+v", got.Relay)
		}
	})
}

// FuzzRender: whatever stands in a conversation, the body is JSON, turns alternate and
// the same request gives the same bytes (P12).
func FuzzRender(f *testing.F) {
	f.Add("text", "call:1", `{"a":1}`, "name.pdf", "aGkh", uint8(0b1011011))
	f.Fuzz(func(t *testing.T, said, id, arguments, name, data string, order uint8) {
		if !dialect.IsBase64(data) {
			data = "aGkh"
		}
		var n neutral.Request
		for i := range 8 {
			m := neutral.Message{Role: neutral.User, Parts: []neutral.Part{
				{Kind: neutral.TextPart, Text: said},
				{Kind: neutral.DocumentPart, Media: neutral.Media{Name: name, Base64: data}},
				{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: id, Parts: []neutral.Part{{Kind: neutral.TextPart, Text: said}}}},
			}}
			if order>>i&1 == 1 {
				m = neutral.Message{Role: neutral.Assistant, Parts: []neutral.Part{
					{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: id, Name: name, Arguments: arguments}},
					{Kind: neutral.TextPart, Text: said},
				}}
			}
			n.Messages = append(n.Messages, m)
		}
		body := render(&n, target(), nil)
		if !gjson.ValidBytes(body) || !bytes.Equal(body, render(&n, target(), nil)) {
			t.Fatalf("built %s", body)
		}
		want := "user"
		for _, m := range gjson.GetBytes(body, "messages").Array() {
			if m.Get("role").Str != want || m.Get("content.#").Int() == 0 {
				t.Fatalf("turns of %s", body)
			}
			want = map[string]string{"user": "assistant", "assistant": "user"}[want]
		}
	})
}

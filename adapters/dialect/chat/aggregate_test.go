package chat

import (
	"testing"

	"github.com/sluice-gateway/sluice/adapters/dialect/dialecttest"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Rules: S11.
func TestAggregate_S11(t *testing.T) {
	tests := []struct {
		name   string
		chunks []string
		want   string
	}{
		{
			"text, logprobs, unknown members",
			[]string{
				`{"id":"a","object":"chat.completion.chunk","model":"m","x":1,"obfuscation":"p","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
				`{"id":"b","object":"chat.completion.chunk","model":"m","x":2,"choices":[{"index":0,"delta":{"content":"a\ud83e"},"logprobs":{"content":[{"token":"a"}]},"finish_reason":null,"native":"x"}],"usage":null}`,
				`{"id":"b","object":"chat.completion.chunk","model":"m","x":null,"choices":[{"index":0,"delta":{"content":"\udda5\n"},"logprobs":{"content":[{"token":"b"}],"refusal":[]},"finish_reason":"stop"}]}`,
				`{"id":"b","model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2},"error":null}`,
			},
			`{"id":"a","object":"chat.completion","model":"m","x":2,"usage":{"prompt_tokens":1,"completion_tokens":2},
			  "choices":[{"index":0,"message":{"role":"assistant","content":"a🦥\n"},"logprobs":{"content":[{"token":"a"},{"token":"b"}],"refusal":[]},"finish_reason":"stop","native":"x"}]}`,
		},
		{
			"reasoning, two calls, a stop that belies them",
			[]string{
				`{"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":"hm"}}]}`,
				`{"choices":[{"delta":{"reasoning_content":"m","reasoning_details":[{"n":1}]}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","extra_content":{"s":1},"function":{"name":"f","arguments":"{\"x\":"}}],"reasoning_details":[{"n":2}]}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"","arguments":"1}"}},{"index":0,"id":"b","type":"function","function":{"name":"g","arguments":{"y":2}}}]}}]}`,
				`{"choices":[{"delta":{},"finish_reason":"stop"}]}`,
			},
			`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning_content":"hmm","reasoning_details":[{"n":1},{"n":2}],"tool_calls":[
			  {"id":"a","type":"function","extra_content":{"s":1},"function":{"name":"f","arguments":"{\"x\":1}"}},
			  {"id":"b","type":"function","function":{"name":"g","arguments":"{\"y\":2}"}}]},"finish_reason":"tool_calls"}]}`,
		},
		{
			"the older call",
			[]string{
				`{"choices":[{"delta":{"function_call":{"name":"f","arguments":"{"}}}]}`,
				`{"choices":[{"delta":{"function_call":{"arguments":"}"}},"finish_reason":"function_call"}]}`,
			},
			`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"function_call"}]}`,
		},
		{
			"a refusal, and two choices out of order",
			[]string{
				`{"choices":[{"index":1,"delta":{"content":"two"},"finish_reason":"length"}]}`,
				`{"choices":[{"index":0,"delta":{"refusal":"I "}}]}`,
				`{"choices":[{"index":0,"delta":{"refusal":"won't"},"finish_reason":"stop"}]}`,
			},
			`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"I won't"},"finish_reason":"stop"},
			  {"index":1,"message":{"role":"assistant","content":"two"},"finish_reason":"length"}]}`,
		},
		{
			"content in parts",
			[]string{
				`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":"x"}]}}]}`,
				`{"choices":[{"delta":{"content":"y"},"finish_reason":"stop"}]}`,
			},
			`{"choices":[{"index":0,"message":{"role":"assistant","content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"y"}]},"finish_reason":"stop"}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			agg := Outbound{}.NewAggregate(asking(false))
			for _, chunk := range tt.chunks {
				raw := []byte(chunk)
				if err := agg.Add(&neutral.Chunk{Dialect: neutral.Chat, Raw: raw}); err != nil {
					t.Fatal(err)
				}
				// The frame's memory is used again: nothing of it may have been kept.
				clear(raw)
			}
			answer, err := agg.Answer()
			if err != nil {
				t.Fatal(err)
			}
			dialecttest.SameJSON(t, tt.want, string(answer.Raw))
		})
	}
}

// Audio in pieces has no known way to be joined, and a guess would be half an answer.
//
// Rules: S3.
func TestAudioIsNotPutTogether_S3(t *testing.T) {
	agg := Outbound{}.NewAggregate(asking(false))
	if err := agg.Add(&neutral.Chunk{Dialect: neutral.Chat, Raw: []byte(`{"choices":[{"delta":{"audio":{"data":"AA"}}}]}`)}); err == nil {
		t.Error("audio was dropped silently")
	}
}

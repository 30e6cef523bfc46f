package chat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/domain/usage"
)

// Rules: M4.
func TestReadUsage_M4(t *testing.T) {
	of, null := usage.Of, usage.Count{State: usage.Null}
	tests := []struct {
		name, in string
		want     usage.Usage
	}{
		{
			"OpenAI", `{"prompt_tokens":16,"completion_tokens":300,"total_tokens":316,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":7}}`,
			usage.Usage{Input: of(16), Output: of(300), CachedInput: of(4), Reasoning: of(7)},
		},
		{
			"xAI counts reasoning beside", `{"prompt_tokens":12,"completion_tokens":2,"total_tokens":354,"completion_tokens_details":{"reasoning_tokens":340}}`,
			usage.Usage{Input: of(12), Output: of(342), Reasoning: of(340)},
		},
		{
			"reasoning beside and below the output", `{"prompt_tokens":10,"completion_tokens":50,"total_tokens":70,"completion_tokens_details":{"reasoning_tokens":10}}`,
			usage.Usage{Input: of(10), Output: of(60), Reasoning: of(10)},
		},
		{
			"reasoning above output without a total", `{"prompt_tokens":12,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":340}}`,
			usage.Usage{Input: of(12), Output: of(342), Reasoning: of(340)},
		},
		{
			"audio and images, where there are any", `{"prompt_tokens":16,"completion_tokens":30,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":9,"image_tokens":3},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"image_tokens":20}}`,
			usage.Usage{Input: of(16), Output: of(30), CachedInput: of(0), Reasoning: of(0), AudioInput: of(9), ImageInput: of(3), ImageOutput: of(20)},
		},
		{
			"DeepSeek's hits", `{"prompt_tokens":18,"completion_tokens":5,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":10}`,
			usage.Usage{Input: of(18), Output: of(5), CachedInput: of(8)},
		},
		{
			"Moonshot's cached", `{"prompt_tokens":20,"completion_tokens":30,"cached_tokens":10}`,
			usage.Usage{Input: of(20), Output: of(30), CachedInput: of(10)},
		},
		{
			"cache writes without a split", `{"prompt_tokens":20,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":9}}`,
			usage.Usage{Input: of(20), Output: of(3), CachedInput: of(0), CacheWrite5m: of(9)},
		},
		{
			"cache writes by lifetime", `{"prompt_tokens":20,"completion_tokens":3,"prompt_tokens_details":{"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":7}}}`,
			usage.Usage{Input: of(20), Output: of(3), CacheWrite5m: of(2), CacheWrite1h: of(7)},
		},
		{"zero, null and absent", `{"prompt_tokens":0,"completion_tokens":null}`, usage.Usage{Input: of(0), Output: null}},
		{"floats that are whole", `{"prompt_tokens":12.0,"completion_tokens":1e1}`, usage.Usage{Input: of(12), Output: of(10)}},
		{
			"no counts at all", `{"prompt_tokens":-1,"completion_tokens":"many","completion_tokens_details":{"reasoning_tokens":1.5}}`,
			usage.Usage{Input: null, Output: null, Reasoning: null},
		},
		{"beyond any count", `{"prompt_tokens":9223372036854775807,"completion_tokens":1e300}`, usage.Usage{Input: null, Output: null}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, readUsage(gjson.Parse(tt.in))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

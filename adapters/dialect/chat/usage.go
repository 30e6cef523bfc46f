package chat

import (
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// readUsage reads a usage object. Where providers differ in where they put a
// count, the first place that has a number wins; none of it is guessed (M4).
func readUsage(u gjson.Result) usage.Usage {
	var (
		out                                   usage.Usage
		total, hit, cached, write, write5, w1 usage.Count
		topReasoning                          usage.Count
	)
	u.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "prompt_tokens":
			out.Input = rawjson.Count(v)
		case "completion_tokens":
			out.Output = rawjson.Count(v)
		case "total_tokens":
			total = rawjson.Count(v)
		case "prompt_cache_hit_tokens": // DeepSeek
			hit = rawjson.Count(v)
		case "cached_tokens": // Moonshot
			cached = rawjson.Count(v)
		case "reasoning_tokens": // Perplexity
			topReasoning = rawjson.Count(v)
		case "completion_tokens_details":
			v.ForEach(func(key, v gjson.Result) bool {
				switch key.Str {
				case "reasoning_tokens":
					out.Reasoning = rawjson.Count(v)
				case "audio_tokens":
					out.AudioOutput = some(v)
				case "image_tokens":
					out.ImageOutput = some(v)
				}
				return true
			})
		case "prompt_tokens_details":
			v.ForEach(func(key, v gjson.Result) bool {
				switch key.Str {
				case "cached_tokens":
					out.CachedInput = rawjson.Count(v)
				case "audio_tokens":
					out.AudioInput = some(v)
				case "image_tokens":
					out.ImageInput = some(v)
				case "cache_write_tokens": // OpenRouter
					write = rawjson.Count(v)
				case "cache_creation_input_tokens", "cache_creation_tokens": // Alibaba and relays
					write5 = rawjson.Count(v)
				case "cache_creation":
					write5 = rawjson.Count(v.Get("ephemeral_5m_input_tokens")).Else(write5)
					w1 = rawjson.Count(v.Get("ephemeral_1h_input_tokens"))
				}
				return true
			})
		}
		return true
	})
	out.CachedInput = out.CachedInput.Else(hit.Else(cached))
	// A total without a split is all at the default lifetime.
	out.CacheWrite5m, out.CacheWrite1h = write5.Else(write), w1
	out.Reasoning = out.Reasoning.Else(topReasoning)
	out.Output = withReasoning(out, total)
	return out
}

// withReasoning is the output with reasoning inside, which is where OpenAI counts
// it. xAI counts it beside: 12 in, 2 out, 340 reasoning, 354 in all. The total tells
// the two apart; without one, reasoning above the output does.
func withReasoning(u usage.Usage, total usage.Count) usage.Count {
	if !u.Output.Known() || u.Reasoning.N <= 0 {
		return u.Output
	}
	sum := u.Output.N + u.Reasoning.N
	beside := u.Reasoning.N > u.Output.N
	if total.Known() && u.Input.Known() {
		beside = total.N == u.Input.N+sum
	}
	if beside {
		return usage.Of(sum)
	}
	return u.Output
}

// some is a count of media, which most answers report as zero and is then not repeated
// in every settlement.
func some(v gjson.Result) usage.Count {
	if c := rawjson.Count(v); c.N > 0 {
		return c
	}
	return usage.Count{}
}

package messages

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// reported are the counts of this dialect as its provider last gave them, field by
// field: message_start and message_delta are both cumulative, so a later number
// replaces an earlier one and is never added to it.
type reported struct {
	input, cacheRead, cacheWrite usage.Count
	// write5m and write1h split cacheWrite by lifetime, where the split is given.
	write5m, write1h usage.Count
	output, thinking usage.Count
}

func (r *reported) read(u gjson.Result) {
	u.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "input_tokens":
			update(&r.input, v)
		case "cache_read_input_tokens":
			update(&r.cacheRead, v)
		case "cache_creation_input_tokens":
			update(&r.cacheWrite, v)
		case "cache_creation":
			v.ForEach(func(key, v gjson.Result) bool {
				switch key.Str {
				case "ephemeral_5m_input_tokens":
					update(&r.write5m, v)
				case "ephemeral_1h_input_tokens":
					update(&r.write1h, v)
				}
				return true
			})
		case "output_tokens":
			update(&r.output, v)
		case "output_tokens_details":
			update(&r.thinking, v.Get("thinking_tokens"))
		}
		return true
	})
}

// update keeps a number against a later null.
func update(c *usage.Count, v gjson.Result) {
	next := rawjson.Count(v)
	if next.State == usage.Absent || (next.State == usage.Null && c.Known()) {
		return
	}
	*c = next
}

// neutral is the usage in OpenAI's sense: here, cached and written tokens stand
// beside input_tokens, there inside of it. Output has reasoning inside in both.
func (r *reported) neutral() usage.Usage {
	w5m, w1h := r.writes()
	out := usage.Usage{
		Input: r.input, CachedInput: r.cacheRead, CacheWrite5m: w5m, CacheWrite1h: w1h,
		Output: r.output, Reasoning: r.thinking,
	}
	if r.input.Known() {
		out.Input = usage.Of(r.input.N + r.cacheRead.Or(0) + w5m.Or(0) + w1h.Or(0))
	}
	return out
}

// writes are the written tokens by lifetime. A total without a split is all at the
// default lifetime, and so is what a split leaves of it.
func (r *reported) writes() (w5m, w1h usage.Count) {
	if !r.cacheWrite.Known() {
		return or(r.write5m, r.cacheWrite), r.write1h
	}
	if !r.write1h.Known() {
		return r.cacheWrite, r.write1h
	}
	long := min(r.write1h.N, r.cacheWrite.N)
	return usage.Of(r.cacheWrite.N - long), usage.Of(long)
}

func or(c, other usage.Count) usage.Count {
	if c.State != usage.Absent {
		return c
	}
	return other
}

// appendUsage writes a usage object of this dialect. Clients compute with its two
// main counts, so both are always there: where the provider gave none, input is what
// admission estimated and output what was seen.
func appendUsage(dst []byte, u usage.Usage, input, output int64) []byte {
	cached, w5m, w1h := u.CachedInput.Or(0), u.CacheWrite5m.Or(0), u.CacheWrite1h.Or(0)
	if u.Input.Known() {
		input = max(0, u.Input.N-cached-w5m-w1h)
	}
	dst = append(dst, `{"input_tokens":`...)
	dst = strconv.AppendInt(dst, input, 10)
	dst = append(dst, `,"cache_creation_input_tokens":`...)
	dst = strconv.AppendInt(dst, w5m+w1h, 10)
	dst = append(dst, `,"cache_read_input_tokens":`...)
	dst = strconv.AppendInt(dst, cached, 10)
	if u.CacheWrite1h.Known() {
		dst = append(dst, `,"cache_creation":{"ephemeral_5m_input_tokens":`...)
		dst = strconv.AppendInt(dst, w5m, 10)
		dst = append(dst, `,"ephemeral_1h_input_tokens":`...)
		dst = append(strconv.AppendInt(dst, w1h, 10), '}')
	}
	dst = append(dst, `,"output_tokens":`...)
	dst = strconv.AppendInt(dst, u.Output.Or(output), 10)
	if u.Reasoning.Known() {
		dst = append(dst, `,"output_tokens_details":{"thinking_tokens":`...)
		dst = append(strconv.AppendInt(dst, u.Reasoning.N, 10), '}')
	}
	return append(dst, '}')
}

// seenTokens is an output's size where its provider gave none: four bytes a token,
// which is what the common vocabularies average on English text.
func seenTokens(outputBytes int64) int64 { return (outputBytes + 3) / 4 }

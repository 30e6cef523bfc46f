package responses

import (
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// readUsage reads a usage object. A count that is not there stays absent; none of it
// is guessed (M4).
func readUsage(u gjson.Result) usage.Usage {
	var out usage.Usage
	var total usage.Count
	u.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "input_tokens":
			out.Input = rawjson.Count(v)
		case "output_tokens":
			out.Output = rawjson.Count(v)
		case "total_tokens":
			total = rawjson.Count(v)
		case "input_tokens_details":
			out.CachedInput = rawjson.Count(v.Get("cached_tokens"))
			// Not split by lifetime as others do: all of it is at the default one.
			out.CacheWrite5m = rawjson.Count(v.Get("cache_write_tokens"))
		case "output_tokens_details":
			out.Reasoning = rawjson.Count(v.Get("reasoning_tokens"))
		}
		return true
	})
	// Reasoning counts inside the output; a provider that counts it beside shows that
	// by its total, or by more reasoning than output.
	if o, r := out.Output, out.Reasoning; o.Known() && r.N > 0 {
		beside := r.N > o.N
		if total.Known() && out.Input.Known() {
			beside = total.N == out.Input.N+o.N+r.N
		}
		if beside {
			out.Output = usage.Of(o.N + r.N)
		}
	}
	return out
}

// writeUsage writes what is known of a usage; null where nothing is.
func writeUsage(o *object, u usage.Usage) {
	if !u.Input.Known() && !u.Output.Known() {
		o.raw("usage", []byte("null"))
		return
	}
	o.open("usage", '{')
	o.number("input_tokens", u.Input.N)
	o.open("input_tokens_details", '{')
	o.number("cached_tokens", u.CachedInput.N)
	o.number("cache_write_tokens", u.CacheWrite5m.N+u.CacheWrite1h.N)
	o.close('}')
	o.number("output_tokens", u.Output.N)
	o.open("output_tokens_details", '{')
	o.number("reasoning_tokens", u.Reasoning.N)
	o.close('}')
	o.number("total_tokens", u.Input.N+u.Output.N)
	o.close('}')
}

package converse

import (
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// readUsage reads a usage object. The dialect counts tokens that were read from a
// cache or written to one beside its input; here they are inside (M4).
func readUsage(u gjson.Result) usage.Usage {
	var input, read, readOld, write, writeOld, output usage.Count
	var details gjson.Result
	u.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "inputTokens":
			input = rawjson.Count(v)
		case "outputTokens":
			output = rawjson.Count(v)
		case "cacheReadInputTokens":
			read = rawjson.Count(v)
		case "cacheWriteInputTokens":
			write = rawjson.Count(v)
		case "cacheReadInputTokenCount": // the names of an older version, still sent
			readOld = rawjson.Count(v)
		case "cacheWriteInputTokenCount":
			writeOld = rawjson.Count(v)
		case "cacheDetails":
			details = v
		}
		return true
	})
	out := usage.Usage{Input: input, CachedInput: read.Else(readOld), Output: output}
	out.CacheWrite5m, out.CacheWrite1h = split(write.Else(writeOld), details)
	if input.Known() {
		out.Input.N += out.CachedInput.Or(0) + out.CacheWrite5m.Or(0) + out.CacheWrite1h.Or(0)
	}
	return out
}

// split divides what was written by lifetime. A total without details is all at the
// default one.
func split(total usage.Count, details gjson.Result) (minutes, hour usage.Count) {
	if !details.IsArray() {
		return total, usage.Count{}
	}
	found := false
	details.ForEach(func(_, v gjson.Result) bool {
		n := rawjson.Count(v.Get("inputTokens"))
		switch {
		case !n.Known():
		case v.Get("ttl").Str == "1h":
			hour, found = usage.Of(hour.N+n.N), true
		default:
			minutes, found = usage.Of(minutes.N+n.N), true
		}
		return true
	})
	if !found {
		return total, usage.Count{}
	}
	return minutes, hour
}

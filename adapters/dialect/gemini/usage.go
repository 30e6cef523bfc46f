package gemini

import (
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// readUsage reads a usageMetadata in OpenAI's sense: what a tool of Google's own put
// into the prompt is input, and thoughts are output. Here each of the two is counted
// beside.
func readUsage(v gjson.Result) usage.Usage {
	var (
		out                                    usage.Usage
		prompt, tools, answer, thoughts, total usage.Count
	)
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "promptTokenCount":
			prompt = count(v)
		case "toolUsePromptTokenCount":
			tools = count(v)
		case "cachedContentTokenCount":
			out.CachedInput = count(v)
		case "candidatesTokenCount":
			answer = count(v)
		case "thoughtsTokenCount":
			thoughts = count(v)
		case "promptTokensDetails":
			out.AudioInput, out.ImageInput = media(v)
		case "candidatesTokensDetails":
			out.AudioOutput, out.ImageOutput = media(v)
		case "totalTokenCount":
			total = count(v)
		}
		return true
	})
	out.Input = prompt
	if prompt.Known() && tools.Known() {
		out.Input = usage.Of(prompt.N + tools.N)
	}
	out.Output, out.Reasoning = output(out.Input, answer, thoughts, total), thoughts
	return out
}

// output is the answer with its thoughts. Their sum is held against the total, in case
// that a relay has counted the thoughts in already. An answer of thoughts alone has no
// count of its own.
func output(input, answer, thoughts, total usage.Count) usage.Count {
	switch {
	case !thoughts.Known():
		return answer
	case !answer.Known():
		return thoughts
	case total.Known() && input.Known() && total.N == input.N+answer.N && thoughts.N <= answer.N:
		return answer
	default:
		return usage.Of(answer.N + thoughts.N)
	}
}

// media reads what of a count is not text. A modality that is not there is none.
func media(details gjson.Result) (audio, images usage.Count) {
	details.ForEach(func(_, v gjson.Result) bool {
		n := count(v.Get("tokenCount"))
		switch {
		case n.N <= 0:
		case v.Get("modality").Str == "AUDIO":
			audio = n
		case v.Get("modality").Str == "IMAGE":
			images = n
		}
		return true
	})
	return audio, images
}

// maxCount is far above any real count and keeps sums inside an int64.
const maxCount = 1 << 50

// count tells a number, null and nothing apart. What is no count at all, negative or
// not whole, reads as null: present and unknown (M4).
func count(v gjson.Result) usage.Count {
	if !v.Exists() {
		return usage.Count{}
	}
	n, ok := rawjson.Integer(v)
	if !ok || n < 0 || n > maxCount {
		return usage.Count{State: usage.Null}
	}
	return usage.Of(n)
}

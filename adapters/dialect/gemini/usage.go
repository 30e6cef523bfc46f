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
			prompt = rawjson.Count(v)
		case "toolUsePromptTokenCount":
			tools = rawjson.Count(v)
		case "cachedContentTokenCount":
			out.CachedInput = rawjson.Count(v)
		case "candidatesTokenCount":
			answer = rawjson.Count(v)
		case "thoughtsTokenCount":
			thoughts = rawjson.Count(v)
		case "promptTokensDetails":
			out.AudioInput, out.ImageInput = media(v)
		case "candidatesTokensDetails":
			out.AudioOutput, out.ImageOutput = media(v)
		case "totalTokenCount":
			total = rawjson.Count(v)
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
		n := rawjson.Count(v.Get("tokenCount"))
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

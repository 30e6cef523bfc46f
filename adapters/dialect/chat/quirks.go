package chat

import (
	"net/url"
	"strings"
)

// quirks are what a compatible provider does otherwise. They are data, found by the
// host of the base URL: nothing is configured, and a provider that is not in the
// table gets what nearly all of them take.
//
// What providers send back otherwise needs no table: the decoder reads each known
// spelling of reasoning, usage and finish reasons wherever it meets it.
type quirks struct {
	name string
	// hosts are exact names, or suffixes that begin with a dot.
	hosts []string
	// keyHeader carries the bare key; empty is Authorization: Bearer.
	keyHeader string
	// noStreamOptions: usage comes unasked, and asking is an unknown field.
	noStreamOptions bool

	// All below concerns requests that come from another dialect. One that was written
	// in this dialect is the caller's word and is passed on (P4).

	// maxTokens is the field that bounds the output.
	maxTokens string
	reasoning reasoningStyle
	// replay is the field in which reasoning goes back with the calls that came of it.
	replay string
	// cacheControl: Anthropic's markers on parts and tools are understood (P6).
	cacheControl bool
	topK         bool
	// noPenalties: frequency_penalty and presence_penalty are unknown fields.
	noPenalties bool
	seed        string
	// callIDBytes is the exact length of a call's id, 0 for any.
	callIDBytes int
}

// reasoningStyle is how a provider is told how much to think.
type reasoningStyle uint8

const (
	// effortField is OpenAI's reasoning_effort.
	effortField reasoningStyle = iota
	// reasoningObject is OpenRouter's reasoning, which takes a budget too.
	reasoningObject
	// thinkingSwitch is DeepSeek's thinking, on or off.
	thinkingSwitch
	// noReasoning: the model alone decides.
	noReasoning
)

// compatible is what a provider gets that is not in the table: vLLM, Ollama, SGLang,
// LM Studio, Together and most others.
var compatible = quirks{name: "compatible", maxTokens: "max_tokens", seed: "seed", topK: true}

// known are the providers whose API reference says otherwise.
var knownProviders = []quirks{
	{
		name: "OpenAI", hosts: []string{"api.openai.com", ".api.openai.com"},
		// Reasoning models refuse the older field.
		maxTokens: "max_completion_tokens", seed: "seed",
	},
	{
		name: "Azure", hosts: []string{".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"},
		keyHeader: "Api-Key", maxTokens: "max_completion_tokens", seed: "seed",
	},
	{
		name: "OpenRouter", hosts: []string{"openrouter.ai"},
		maxTokens: "max_tokens", reasoning: reasoningObject, cacheControl: true, topK: true, seed: "seed",
	},
	{
		name: "Groq", hosts: []string{"api.groq.com"},
		maxTokens: "max_completion_tokens", seed: "seed",
	},
	{
		name: "DeepSeek", hosts: []string{"api.deepseek.com"},
		// A thinking model that calls a tool wants to see why it did.
		maxTokens: "max_tokens", reasoning: thinkingSwitch, replay: "reasoning_content",
	},
	{
		name: "Mistral", hosts: []string{"api.mistral.ai", "codestral.mistral.ai"},
		// It refuses fields that it does not know.
		noStreamOptions: true, maxTokens: "max_tokens", reasoning: noReasoning, seed: "random_seed", callIDBytes: 9,
	},
	{
		name: "xAI", hosts: []string{"api.x.ai", ".api.x.ai"},
		// Its reasoning models refuse penalties.
		maxTokens: "max_completion_tokens", noPenalties: true, seed: "seed",
	},
}

// quirksOf finds a provider's own ways.
func quirksOf(base *url.URL) *quirks {
	host := strings.ToLower(base.Hostname())
	for i := range knownProviders {
		for _, h := range knownProviders[i].hosts {
			if host == h || (h[0] == '.' && strings.HasSuffix(host, h)) {
				return &knownProviders[i]
			}
		}
	}
	return &compatible
}

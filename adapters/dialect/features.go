package dialect

import (
	"slices"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Feature is something that a request uses and that not every dialect can say. A
// destination that cannot say it is skipped like one that lacks a capability: what
// a caller asked for is never taken away to make a destination fit (N21, P5).
type Feature string

// The features. The provider's own tools run where the model runs, and stored state
// is where it was stored: neither can be had elsewhere.
const (
	SeveralChoices Feature = "several_choices"
	LogProbs       Feature = "logprobs"
	AudioInput     Feature = "audio_input"
	AudioOutput    Feature = "audio_output"
	ImageURLs      Feature = "image_urls"
	DocumentURLs   Feature = "document_urls"
	StoredFiles    Feature = "stored_files"
	CustomTools    Feature = "custom_tools"
	AllowedTools   Feature = "allowed_tools"
	ServerTools    Feature = "server_tools"
	StoredState    Feature = "stored_state"
	Background     Feature = "background"
	Vectors        Feature = "embeddings"
)

// carriers lists the dialects into which a feature is translated. Its own dialect
// always can and is not listed for that; a feature without carriers goes nowhere
// else.
var carriers = map[Feature][]neutral.Dialect{
	SeveralChoices: nil,
	LogProbs:       nil,
	AudioInput:     {neutral.Chat, neutral.Generate},
	AudioOutput:    nil,
	ImageURLs:      {neutral.Chat, neutral.Responses, neutral.Messages},
	DocumentURLs:   {neutral.Responses, neutral.Messages},
	StoredFiles:    nil,
	CustomTools:    nil,
	AllowedTools:   nil,
	ServerTools:    nil,
	StoredState:    nil,
	Background:     nil,
	// Embeddings are the one operation that stays on the providers that speak it.
	Vectors: {neutral.Chat},
}

// Features lists every feature, for tests and documentation.
func Features() []Feature {
	return []Feature{
		SeveralChoices, LogProbs, AudioInput, AudioOutput, ImageURLs, DocumentURLs, StoredFiles,
		CustomTools, AllowedTools, ServerTools, StoredState, Background, Vectors,
	}
}

// Carries reports whether a feature of a request in one dialect can be said in
// another.
func Carries(f Feature, from, to neutral.Dialect) bool {
	return from == to || slices.Contains(carriers[f], to)
}

// Use adds a feature, once.
func (r *Request) Use(f Feature) {
	if !slices.Contains(r.Features, f) {
		r.Features = append(r.Features, f)
	}
}

// Lacks is the first feature of the request that a destination of a dialect cannot
// say, or "".
func (r *Request) Lacks(to neutral.Dialect) Feature {
	for _, f := range r.Features {
		if !Carries(f, r.Dialect, to) {
			return f
		}
	}
	return ""
}

// protocols are the dialects that providers speak, by the word of sluice.yaml.
var protocols = map[catalog.Protocol]neutral.Dialect{
	catalog.OpenAI:          neutral.Chat,
	catalog.OpenAIResponses: neutral.Responses,
	catalog.Anthropic:       neutral.Messages,
	catalog.Bedrock:         neutral.Converse,
	catalog.Gemini:          neutral.Generate,
}

// SpokenIn is the dialect of a protocol.
func SpokenIn(p catalog.Protocol) neutral.Dialect { return protocols[p] }

// Unsayable names, for each protocol that cannot say all of the request, what it
// cannot say. It is nil for the usual request, which every protocol can.
func (r *Request) Unsayable() map[catalog.Protocol]string {
	if len(r.Features) == 0 {
		return nil
	}
	lacking := map[catalog.Protocol]string{}
	for protocol, to := range protocols {
		if f := r.Lacks(to); f != "" {
			lacking[protocol] = string(f)
		}
	}
	return lacking
}

// Package gemini is Google's generateContent, as the Gemini API and Vertex AI speak
// it. Callers do not: every request is translated, and every answer is decoded into
// neutral events.
//
// What is peculiar to it: calls have no ids and results are matched by place and
// name; a schema with one unknown keyword loses the whole call; reasoning tokens are
// counted beside the output; an answer ends in a STOP that says nothing of the call
// before it; signatures stand on parts and must return to the part they stood on.
package gemini

import (
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Outbound is generateContent as Google serves it.
type Outbound struct {
	// Tokens make OAuth tokens of credentials for Vertex AI. Without them only API keys
	// are of use.
	Tokens *Tokens
}

// Name is generate.
func (Outbound) Name() neutral.Dialect { return neutral.Generate }

var _ dialect.Outbound = Outbound{}

const (
	// userAgent is how we name ourselves upstream.
	userAgent = "sluice"
	// maxToolCalls bounds what is remembered of a stream. openai-go's accumulator takes
	// indexes up to 127.
	maxToolCalls = 128
	// onCall is the id of a signature that stood on a function call and has to stand
	// there again; one without an id stood on text.
	onCall = "functionCall"
)

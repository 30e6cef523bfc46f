// Package responses is the OpenAI Responses dialect, in both directions.
//
// Between a caller and a provider that both speak it, bytes pass as they came, items
// and events of tools unknown here included (P4); only the model's name is cut into
// them (N23). For all others requests become neutral ones and answers are written
// from neutral events: one response.created, items that open and close, one terminal
// event with the whole response in it, and never [DONE] (P11).
//
// Stored responses are kept here and not at a provider: a conversation that is
// continued by previous_response_id is written out into the request, so that any
// destination can answer it (K6).
package responses

import (
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Inbound is Responses as callers speak it. The zero value keeps nothing: it refuses
// a previous_response_id and stores no answer.
type Inbound struct {
	// Store is nil where the organization lets nothing be kept (retention.responses).
	Store *Store
	// Owner is whose responses are read and written in Store.
	Owner Owner
}

// Name is responses.
func (Inbound) Name() neutral.Dialect { return neutral.Responses }

// Outbound is Responses as providers speak it.
type Outbound struct{}

// Name is responses.
func (Outbound) Name() neutral.Dialect { return neutral.Responses }

var (
	_ dialect.Inbound  = Inbound{}
	_ dialect.Outbound = Outbound{}
)

const (
	// maxItems and maxParts bound what is remembered of a stream: a long agentic turn
	// has some dozens of items, each with a few parts.
	maxItems = 1024
	maxParts = 4096
	// maxToolCalls is what clients of the other dialects take.
	maxToolCalls = 128
	// maxArena is how much memory for unescaped text a stream keeps (S9).
	maxArena = 64 << 10
)

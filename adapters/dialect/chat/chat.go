// Package chat is the OpenAI Chat Completions dialect, in both directions.
//
// What a provider sends reaches a caller of the same dialect byte for byte, in
// order, unknown fields included (P4). Known facts are read out of the bytes, and
// the few changes that the gateway owes its caller are cut into them: the model's
// name (N23), usage that was not asked for (S8), tool indexes, a finish reason that
// belies a tool call, an error member that is no error (P11).
package chat

import (
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Inbound is Chat Completions as callers speak it.
type Inbound struct{}

// Name is chat.
func (Inbound) Name() neutral.Dialect { return neutral.Chat }

// Outbound is Chat Completions as providers speak it: OpenAI and all that call
// themselves compatible.
type Outbound struct{}

// Name is chat.
func (Outbound) Name() neutral.Dialect { return neutral.Chat }

var (
	_ dialect.Inbound  = Inbound{}
	_ dialect.Outbound = Outbound{}
)

const (
	// maxChoices and maxToolCalls bound what is remembered of a stream. openai-go's
	// accumulator takes indexes up to 127.
	maxChoices   = 128
	maxToolCalls = 128
)

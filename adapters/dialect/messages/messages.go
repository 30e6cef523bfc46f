// Package messages is the Anthropic Messages dialect, in both directions.
//
// What a provider sends reaches a caller of the same dialect byte for byte and in
// order, unknown blocks and events included (P4); only the model's name is cut into
// it (N23). For callers and providers of other dialects the package has the two
// state machines of its protocol: one reads blocks into neutral events, the other
// writes neutral events as blocks that start, go on and stop in their order (P11).
package messages

import (
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Inbound is Messages as callers speak it.
type Inbound struct{}

// Name is messages.
func (Inbound) Name() neutral.Dialect { return neutral.Messages }

// Outbound is Messages as providers speak it: Anthropic and those compatible with
// it.
type Outbound struct{}

// Name is messages.
func (Outbound) Name() neutral.Dialect { return neutral.Messages }

var (
	_ dialect.Inbound  = Inbound{}
	_ dialect.Outbound = Outbound{}
)

const (
	// maxBlocks bounds the blocks of an answer that are remembered while it streams.
	// Agents' answers with server tools have been seen with 60.
	maxBlocks = 4096
	// maxToolCalls bounds the calls of one answer.
	maxToolCalls = 128
)

// The types of content blocks that the gateway acts on.
const (
	blockText     = "text"
	blockThinking = "thinking"
	blockRedacted = "redacted_thinking"
	blockToolUse  = "tool_use"
	blockResult   = "tool_result"
	blockImage    = "image"
	blockDocument = "document"
	blockFallback = "fallback"
	blockSearch   = "search_result"
)

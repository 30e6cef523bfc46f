// Package converse is Amazon Bedrock's Converse dialect, as providers speak it. No
// caller does: every request is said anew from the neutral one and every answer is
// decoded.
//
// Bedrock is many models behind one wire format. What a model may be asked beyond
// the format itself is data, in models.go.
package converse

import (
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Outbound is Converse as Bedrock speaks it.
type Outbound struct{}

// Name is converse.
func (Outbound) Name() neutral.Dialect { return neutral.Converse }

var _ dialect.Outbound = Outbound{}

const (
	// maxToolCalls bounds what is remembered of an answer. openai-go's accumulator
	// takes indexes up to 127.
	maxToolCalls = 128
	// maxScratch is how much memory for payloads and unescaped text a stream keeps from
	// one event to the next (S9).
	maxScratch = 64 << 10
)

// payload is a 2xx reply that is not what the dialect says. The work behind it may
// have been done (W13).
func payload(code string) *failure.Failure {
	return &failure.Failure{Class: failure.BadPayload, Code: code, PossiblyBilled: true}
}

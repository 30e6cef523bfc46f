package requests

import (
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// State says whether more is to come.
type State string

// The states of a request.
const (
	Open  State = "open"
	Final State = "final"
)

// Row is one request as it is searched and shown. Amounts and tokens are sums over
// its settled attempts.
type Row struct {
	ID             uuid.UUID
	Tenant         string
	Key            string
	At             time.Time // observed time of the first event
	State          State
	RequestedModel string
	CanonicalModel string
	// Class is the traffic class that the caller asked for, empty if it named a model.
	Class           string
	Dialect         string
	Stream          bool
	Snapshot        string
	ClientRequestID string

	Outcome       request.Outcome // empty while open
	Code          string
	Status        int64
	Attempts      int64
	FallbackDepth int64
	// Provider is where the last attempt went; Masked hides it from the caller (X1).
	Provider string
	Masked   bool

	// Basis is the weakest of the attempts': one unknown attempt makes the sum
	// unknown (M6). Empty before the first settlement.
	Basis usage.Basis
	// Tokens are nil where no attempt reported them: absent is not zero (M4).
	InputTokens        *int64
	CachedInputTokens  *int64
	CacheWrite5mTokens *int64
	CacheWrite1hTokens *int64
	OutputTokens       *int64
	ReasoningTokens    *int64
	request.Amounts

	DurationMS *int64 // nil while open
	TTFTMS     *int64 // nil without output
}

// Usage is the row's tokens in the domain's shape.
func (r Row) Usage() usage.Usage {
	return usage.Usage{
		Input: count(r.InputTokens), CachedInput: count(r.CachedInputTokens),
		CacheWrite5m: count(r.CacheWrite5mTokens), CacheWrite1h: count(r.CacheWrite1hTokens),
		Output: count(r.OutputTokens), Reasoning: count(r.ReasoningTokens),
	}
}

func count(n *int64) usage.Count {
	if n == nil {
		return usage.Count{}
	}
	return usage.Of(*n)
}

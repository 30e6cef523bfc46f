package provider

import (
	"time"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// Call is one attempt to be made.
type Call struct {
	Protocol catalog.Protocol
	BaseURL  string
	// Secret is an API key; Access signs requests in its place.
	Secret string
	Access dialect.AccessKey
	// Region is where the provider runs, for protocols that name it.
	Region        string
	UpstreamModel string
	Request       *dialect.Request
	// Stream asks the provider for a stream, whatever the caller asked for (S11).
	Stream         bool
	IdempotencyKey string
	// MaxOutputTokens is the output that the attempt was planned with (A6).
	MaxOutputTokens int64
	// WithoutSeals leaves out reasoning that only its issuer can read (K5).
	WithoutSeals bool
	Limits       Limits
}

// Limits are the limits of silence of one attempt (W11). A zero field has the
// default of its constant; FirstOutput has none.
type Limits struct {
	// Connect bounds name lookup, TCP and TLS.
	Connect time.Duration
	// FirstByte runs from dispatch to the first byte of a streamed body: headers
	// alone say nothing about whether the model has begun. It does not apply to a
	// whole answer.
	FirstByte time.Duration
	// FirstOutput runs from dispatch to the first semantic output of a stream.
	FirstOutput time.Duration
	// StreamIdle runs between generation events of a stream.
	StreamIdle time.Duration
	// ErrorBody bounds the reading of an error's body.
	ErrorBody time.Duration
	// Whole runs from dispatch to the end of a whole answer.
	Whole time.Duration
}

// The defaults of Limits.
const (
	DefaultConnect    = 5 * time.Second
	DefaultFirstByte  = 20 * time.Second
	DefaultStreamIdle = 60 * time.Second
	DefaultErrorBody  = 250 * time.Millisecond
	// DefaultWhole is the default request deadline: a whole answer without a bound of
	// its own has no other.
	DefaultWhole = 600 * time.Second
)

func (l Limits) withDefaults() Limits {
	or := func(d, def time.Duration) time.Duration {
		if d <= 0 {
			return def
		}
		return d
	}
	l.Connect = or(l.Connect, DefaultConnect)
	l.FirstByte = or(l.FirstByte, DefaultFirstByte)
	l.StreamIdle = or(l.StreamIdle, DefaultStreamIdle)
	l.ErrorBody = or(l.ErrorBody, DefaultErrorBody)
	l.Whole = or(l.Whole, DefaultWhole)
	return l
}

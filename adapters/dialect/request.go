package dialect

import (
	"iter"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Request is a caller's request, decoded once. It is read-only from then on and
// every attempt builds its own body from it: no attempt sends bytes that were made
// for another one (W14).
type Request struct {
	Dialect neutral.Dialect
	// Raw is the caller's body. It is never changed.
	Raw    []byte
	Model  string
	Stream bool
	// IncludeUsage is whether a streaming caller asked for usage. It is asked for
	// upstream in any case, and hidden from a caller who did not ask (S8).
	IncludeUsage bool
	// MaxOutputTokens is the caller's own limit, 0 when not set.
	MaxOutputTokens int64
	// Choices is how many answers were asked for, at least 1.
	Choices int
	// Needs are the capabilities that a destination must have (N21), in the order
	// of the catalog's list, each at most once.
	Needs []catalog.Capability
	// Features are what the request uses that not every dialect can say (P5), in the
	// order in which they were met, each at most once.
	Features []Feature
	// WholeOnly says that the dialect has no streams: its answers come in one piece.
	WholeOnly bool
	// Addresses are where the request has its provider fetch pictures and documents from.
	Addresses []Address
	// Sealed says that the request carries reasoning that only its issuer can read (K4).
	Sealed bool
	// Seal is the last of that reasoning: whose it is decides which route goes first.
	Seal neutral.OpaqueReasoning
	// Continues is the stored response that the conversation was taken from (K6).
	Continues Continues
	Hints     Hints
	Parts     Parts
	// Neutral decodes the request for a destination of another dialect. It reads Raw
	// anew each time and is called only where it is needed: most requests go out in
	// the dialect they came in. The error is an *InvalidError. An inbound dialect sets
	// it in Parse.
	Neutral func() (*neutral.Request, error)
	// Flags are what came beside the body for a provider of the request's own dialect.
	// The server sets them after Parse.
	Flags Flags
}

// Address is a URL of the caller's and the field it stands in.
type Address struct{ Param, URL string }

// Fetch notes an address.
func (r *Request) Fetch(param, url string) {
	r.Addresses = append(r.Addresses, Address{Param: param, URL: url})
}

// Flags are the headers of a caller that change what a provider of the caller's own
// dialect does. A destination passes on what its own allow list has.
type Flags struct {
	// AnthropicVersion is empty when it was not sent.
	AnthropicVersion string
	// AnthropicBeta has one entry a flag, in the caller's order.
	AnthropicBeta []string
}

// Continues names a stored response that Raw was completed from. The zero value is a
// request that stands for itself.
type Continues struct {
	// ResponseID is the caller's previous_response_id.
	ResponseID string
	// Items is how many items at the front of Raw's input come from there.
	Items int
}

// Hints are what a caller sent to help routing. They are never an authority and
// never stored but as keyed hashes (E10).
type Hints struct {
	PromptCacheKey string
	User           string
}

// Parts is what the token estimate of A6 is made of.
type Parts struct {
	Messages int
	Tools    int
	Images   int
	// Documents has one entry a document: its size in bytes, 0 when unknown.
	Documents []int64
	// Base64Bytes is the length of opaque base64 that is no image and no document,
	// such as audio and encrypted reasoning.
	Base64Bytes int64
	// Spans are the places of Request.Raw that hold prompt text. Read them with
	// Request.Texts.
	Spans []Span
}

// Span is a piece of Request.Raw, end exclusive. Escaped says that it is the
// inside of a JSON string with escapes in it.
type Span struct {
	Start, End int
	Escaped    bool
}

// Texts yields every text of the prompt in order. A text without escapes is a view
// of Raw; one with escapes is unescaped into a buffer that the next one reuses. Do
// not keep or change what it yields.
func (r *Request) Texts() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var buf []byte
		for _, s := range r.Parts.Spans {
			text := r.Raw[s.Start:s.End]
			if s.Escaped {
				buf = AppendUnescaped(buf[:0], text)
				text = buf
			}
			if !yield(text) {
				return
			}
		}
	}
}

// Meta is what an encoder adds to an answer that is not the provider's.
type Meta struct {
	// RequestID is ours.
	RequestID string
	// Model is the name that the reply carries: the requested one, or the canonical
	// one where reply_model says so (N23).
	Model string
	// InputTokens is the admission's estimate (A6), for dialects that name the input
	// before it was counted. 0 is not known.
	InputTokens int64
}

// InvalidError is a request that is not what its dialect allows. Message is safe
// to send: it names fields and limits, never the caller's content.
type InvalidError struct {
	Message string
	// Param is the field, as the dialect spells it: messages[2].content. Empty when
	// the body as a whole is at fault.
	Param string
	// Status is 404 where what the request names is not there, 0 for the usual 400.
	Status int
}

// Error is the message.
func (e *InvalidError) Error() string { return e.Message }

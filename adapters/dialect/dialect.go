package dialect

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Inbound is a dialect that callers speak. It has no state and is safe for
// concurrent use.
type Inbound interface {
	Name() neutral.Dialect
	// Parse reads a caller's body and keeps it: it must not change afterwards, so a
	// server that reuses its buffers hands over a copy. The error is an *InvalidError.
	Parse(body []byte) (*Request, error)
	// NewStream begins a streaming reply.
	NewStream(req *Request, meta Meta) StreamEncoder
	// Whole is the body of a non-streaming reply.
	Whole(req *Request, answer *neutral.Answer, meta Meta) ([]byte, error)
	// Error is a whole error reply. The headers are the error's own (retry-after and
	// its kin, content-type); request ids are the server's to add.
	Error(e *apierror.Error) (status int, header http.Header, body []byte)
}

// StreamEncoder writes one streaming reply as complete SSE events. Each method
// appends to dst and returns it. It holds nothing back: a preamble that must wait
// for the first output (S5) waits with the caller of Encode.
type StreamEncoder interface {
	// Encode writes a chunk; it may append nothing. An error is a chunk that cannot
	// be said in this dialect.
	Encode(dst []byte, c *neutral.Chunk) ([]byte, error)
	// End writes the success terminator.
	End(dst []byte) []byte
	// Fail writes an error event in place of the terminator (S3).
	Fail(dst []byte, e *apierror.Error) []byte
	// KeepAlive writes what the dialect allows between events (S10).
	KeepAlive(dst []byte) []byte
}

// Outbound is a dialect that providers speak. It has no state and is safe for
// concurrent use.
type Outbound interface {
	Name() neutral.Dialect
	// Build makes the HTTP request for one target from the caller's own body. An
	// error is a request that cannot be carried there (P5).
	Build(req *Request, t Target) (*Upstream, error)
	// DecodeWhole reads a body that came with a 2xx.
	DecodeWhole(req *Request, body []byte) (neutral.Answer, *failure.Failure)
	// NewStream reads a body that came with a 2xx as a stream.
	NewStream(req *Request, body io.Reader) StreamDecoder
	// NewAggregate puts a stream back together (S11).
	NewAggregate(req *Request) Aggregate
	// Classify names what a reply that is no 2xx means (W4).
	Classify(r Refusal) failure.Failure
}

// Authorizer is an Outbound whose credential has to be asked for over the network and
// so is no part of what Build makes.
type Authorizer interface {
	// Authorize adds it to a request that was built with the same secret. It asks by
	// means of rt and waits no longer than ctx. The provider has not been called yet:
	// nothing can have been billed.
	Authorize(ctx context.Context, rt http.RoundTripper, up *Upstream, secret string) *failure.Failure
}

// StreamDecoder reads one provider's stream.
type StreamDecoder interface {
	// Next reads the next chunk into c, whose memory it owns until the call after.
	//
	// io.EOF is an answer that ended as it should. A *failure.Failure is one that did
	// not: an error event, a malformed event, a missing terminator, no output at all
	// (S4, S14, W8). Any other error is the body's own, before the answer was finished.
	Next(c *neutral.Chunk) error
	// Ready reports whether Next will return without reading from the body, which may
	// wait. It ends the life of the chunk before.
	Ready() bool
	// Finished reports whether the answer has said why it ended. What may still
	// follow is usage and the sentinel. A body that breaks after this ends the answer
	// as it should (S7, S14).
	Finished() bool
	// Tally is what was read so far.
	Tally() *neutral.Tally
}

// Aggregate builds a whole reply out of a stream's chunks.
type Aggregate interface {
	// Add takes a chunk; it keeps no part of the chunk's memory.
	Add(c *neutral.Chunk) error
	// Answer is the whole reply. Call it once, after the stream's io.EOF.
	Answer() (neutral.Answer, error)
}

// Target is where an attempt goes.
type Target struct {
	// BaseURL is what the vendor's own SDK takes.
	BaseURL string
	// Secret is the provider's API key. Access is set in its place where requests are
	// signed.
	Secret string
	Access AccessKey
	// Region is where the provider runs, for protocols whose address or signature
	// names it.
	Region        string
	UpstreamModel string
	// Stream asks for a stream, whatever the caller asked for (S11).
	Stream         bool
	IdempotencyKey string
	// WithoutSeals leaves out reasoning that only its issuer can read: this
	// destination has said that it cannot (K5).
	WithoutSeals bool
	// MaxOutputTokens is the output that was planned for (A6), for dialects in which
	// a request must name a limit. 0 is not known.
	MaxOutputTokens int64
	// BetaFlags are the beta flags of the caller that this destination may be sent;
	// nil is all of them (P11).
	BetaFlags []string
	// Now is when the request is made, for signatures.
	Now time.Time
}

// AccessKey signs requests. It prints as a placeholder (C14).
type AccessKey struct {
	ID     string
	Secret string
	// Session goes with temporary keys; empty for lasting ones.
	Session string
}

// String hides the key from %s, %v and %+v.
func (AccessKey) String() string { return "[access key]" }

// GoString hides the key from %#v.
func (AccessKey) GoString() string { return "[access key]" }

// Upstream is a request ready to be sent.
type Upstream struct {
	Method string
	URL    string
	// Header has all that is sent, by allow list (Z4): nothing of the caller's is
	// copied but what the dialect names.
	Header http.Header
	Body   []byte
}

// Refusal is a provider's reply that is no 2xx, or an error object found inside
// one.
type Refusal struct {
	Status int
	// Header may be nil.
	Header http.Header
	// Body may be cut off.
	Body []byte
	// Now is the local time at which the reply was read, for dates in it.
	Now time.Time
}

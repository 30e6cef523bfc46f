package edge

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Request is what a client sent, copied out of fasthttp's buffers: it may be
// kept for as long as one likes.
type Request struct {
	Method string
	// Path is the path as sent, still percent-encoded, without the query. It is
	// empty when the request could not be parsed that far.
	Path string
	// Params are the pattern's path values, percent-decoded; nil when it has none.
	Params map[string]string
	Query  url.Values
	// Header has canonical keys and every value of a repeated line, Host included.
	// Content-Encoding and Content-Length are gone when Body was unpacked.
	Header http.Header
	// Body is the whole body, unpacked, at most Limits.BodyBytes.
	Body       []byte
	RemoteAddr string
	// At is when the header was complete.
	At time.Time
}

// Reply is what goes back. Either Body or Stream is used.
type Reply struct {
	Status int
	// Header is sent as it is; Content-Length and Transfer-Encoding are the edge's.
	Header http.Header
	Body   []byte
	// Stream, when set, runs after the handler; Status and Header are sent with its
	// first event, so it should have one before it waits for more. It is called
	// exactly once for every Reply that a Handler returns, also when the client
	// has left or asked with HEAD (then with an ended context), so what it owns
	// is always released. nil ends the body properly; an error or a panic breaks
	// the connection, so that the client sees a truncation and not an end.
	//
	// It is a continuation because fasthttp writes the header, which comes before the
	// first event, only after the handler returned.
	Stream func(ctx context.Context, w StreamWriter) error
}

// StreamWriter sends the events of one stream.
type StreamWriter interface {
	// Write sends one whole event at once and returns when the kernel has taken
	// it: a slow client slows the caller (S9). It fails with ErrClientGone,
	// ErrClientStalled or ErrStreamOver, and does not keep p. It is safe for
	// concurrent use.
	Write(p []byte) error
}

// Handler answers one request. ctx ends when the client goes away, when a
// shutdown runs out of patience or when the exchange is over; context.Cause
// tells which (ErrClientGone, ErrShutdown, context.Canceled). For a Reply with a
// Stream the exchange is over when the Stream returned. A nil Reply sends
// nothing and closes the connection: right for a client that left.
type Handler func(ctx context.Context, r *Request) *Reply

// Causes of an ended exchange context, and what StreamWriter.Write returns.
var (
	// ErrClientGone: the client closed or reset the connection, or closed its
	// sending half, which for HTTP/1 is the same.
	ErrClientGone = errors.New("edge: client went away")
	// ErrClientStalled is an ErrClientGone: the client took no byte for Limits.WriteStall.
	ErrClientStalled error = stalledError{}
	// ErrShutdown: Shutdown's context ended first. Writing still works for
	// forcedGrace, for a last event.
	ErrShutdown = errors.New("edge: server is shutting down")
	// ErrStreamOver: a Write after Stream returned, or to a HEAD request.
	ErrStreamOver = errors.New("edge: stream is over")
)

type stalledError struct{}

func (stalledError) Error() string        { return "edge: client stopped reading" }
func (stalledError) Is(target error) bool { return target == ErrClientGone }

// ErrorKind is why the edge, and not a Handler, answers.
type ErrorKind uint8

// The kinds, each with the status that Status names.
const (
	Malformed           ErrorKind = iota + 1 // 400: not HTTP, ambiguous length, corrupt compressed body
	NotFound                                 // 404: no pattern matches
	MethodNotAllowed                         // 405: another method's pattern matches; Allow is set by the edge
	Timeout                                  // 408: header or body too slow
	BodyTooLarge                             // 413: over Limits.BodyBytes, on the wire or unpacked
	UnsupportedEncoding                      // 415: Content-Encoding other than gzip, zstd, br, identity
	HeaderTooLarge                           // 431: over Limits.HeaderBytes
	Panic                                    // 500: the Handler panicked or returned nothing
	Overloaded                               // 503: Limits.Conns are open
)

var kinds = [...]struct {
	status int
	name   string
}{
	Malformed:           {http.StatusBadRequest, "malformed"},
	NotFound:            {http.StatusNotFound, "not_found"},
	MethodNotAllowed:    {http.StatusMethodNotAllowed, "method_not_allowed"},
	Timeout:             {http.StatusRequestTimeout, "timeout"},
	BodyTooLarge:        {http.StatusRequestEntityTooLarge, "body_too_large"},
	UnsupportedEncoding: {http.StatusUnsupportedMediaType, "unsupported_encoding"},
	HeaderTooLarge:      {http.StatusRequestHeaderFieldsTooLarge, "header_too_large"},
	Panic:               {http.StatusInternalServerError, "panic"},
	Overloaded:          {http.StatusServiceUnavailable, "overloaded"},
}

// Status is the HTTP status of the kind.
func (k ErrorKind) Status() int { return kinds[k].status }

func (k ErrorKind) String() string { return kinds[k].name }

// Defaults of Limits.
const (
	// DefaultBodyBytes fits a request with several images as base64 (Z5).
	DefaultBodyBytes = 32 << 20
	// DefaultHeaderBytes is fasthttp's read buffer, which every open connection
	// keeps: it counts towards the 64 KiB that an open stream may cost (S9), so a
	// limit of 64 KiB would spend them all. 16 KiB is what Node allows.
	DefaultHeaderBytes   = 16 << 10
	DefaultHeaderTimeout = 10 * time.Second
	// DefaultBodyTimeout lets a full body pass at about 4 Mbit/s.
	DefaultBodyTimeout = 60 * time.Second
	// DefaultIdleTimeout is longer than the idle time of common load balancers
	// (60 s), so that they close first and never meet a connection just closed.
	DefaultIdleTimeout = 75 * time.Second
	DefaultWriteStall  = 60 * time.Second
	// DefaultConns at about 40 KiB each is 320 MiB.
	DefaultConns = 8192
)

// Limits bounds what clients may take (Z5). Zero means the default.
type Limits struct {
	BodyBytes     int           // of one body, both as sent and unpacked
	HeaderBytes   int           // of request line and header
	HeaderTimeout time.Duration // from the first byte (or the accept) to the end of the header
	BodyTimeout   time.Duration // from there to the end of the body
	IdleTimeout   time.Duration // between two requests on a connection
	WriteStall    time.Duration // for which a client may take no byte
	Conns         int           // open connections
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.BodyBytes, DefaultBodyBytes)
	setDefault(&l.HeaderBytes, DefaultHeaderBytes)
	setDefault(&l.HeaderTimeout, DefaultHeaderTimeout)
	setDefault(&l.BodyTimeout, DefaultBodyTimeout)
	setDefault(&l.IdleTimeout, DefaultIdleTimeout)
	setDefault(&l.WriteStall, DefaultWriteStall)
	setDefault(&l.Conns, DefaultConns)
	return l
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Config describes one Server.
type Config struct {
	// Addr is the address to listen on, used when Listener is nil.
	Addr     string
	Listener net.Listener
	Limits   Limits
	// OnError renders the edge's own errors in the caller's dialect. The Request
	// has no Body and, for Malformed, HeaderTooLarge, Timeout and Overloaded,
	// possibly nothing but RemoteAddr and At. nil renders the status alone.
	OnError func(*Request, ErrorKind) *Reply
	// Logger gets panics, without their message: it may hold a caller's data.
	Logger *slog.Logger
}

// Package apierror is the one edge where what went wrong inside becomes what a
// caller is told: the table of codes, and the error that carries one. Messages are
// our own words; text of a provider reaches a caller only as the Relay of that
// caller's own fault (D7).
package apierror

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-gateway/sluice/domain/failure"
)

// Error is what a caller gets.
type Error struct {
	Code Code
	// Status is the HTTP status. 0 means the code's own.
	Status int
	// Message is safe to send. Empty means the code's own.
	Message string
	Param   string
	// Retryable says whether the same request may go better later.
	Retryable bool
	RequestID string

	// Scope, Limit, Used, Unit and ResetsAt describe the limit of a refusal. Limit
	// and Used are nil on anything else.
	Scope    string
	Limit    *int64
	Used     *int64
	Unit     string
	ResetsAt time.Time

	// RetryAfter is when to come back, 0 when there is nothing to say.
	RetryAfter time.Duration
	// Attempts lists the candidates of a walk that is spent (W16).
	Attempts []Attempt
	// Relay is the provider's word on the caller's own fault (W3, D7).
	Relay *failure.Relay
}

// Attempt is one candidate of a spent walk. There is no provider text in it.
type Attempt struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Failure  string `json:"failure"`
	// Status is the provider's, 0 when there was none.
	Status int `json:"status,omitempty"`
}

// New is an error with everything its code's row says.
func New(code Code) *Error {
	row := Of(code)
	return &Error{Code: code, Status: row.Status, Message: row.Message, Retryable: row.Retryable}
}

// Error is the code and message, for errors inside the gateway.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Text() }

// HTTPStatus is the status to reply with.
func (e *Error) HTTPStatus() int {
	switch {
	case e.Relay != nil && e.Relay.Status >= 400 && e.Relay.Status <= 499 && e.Code == InvalidRequest:
		return e.Relay.Status
	case e.Status != 0:
		return e.Status
	default:
		return Of(e.Code).Status
	}
}

// Text is the message to reply with.
func (e *Error) Text() string {
	switch {
	case e.Relay != nil && e.Relay.Message != "":
		return e.Relay.Message
	case e.Message != "":
		return e.Message
	default:
		return Of(e.Code).Message
	}
}

// MaxRetryAfter is the longest wait that is put into a header. openai-python does
// not retry at all on a longer one and anthropic-sdk-go sleeps through any; the
// true time is in the body (P11).
const MaxRetryAfter = 60 * time.Second

// Header is what the error says in headers: retry-after, retry-after-ms and
// x-should-retry.
func (e *Error) Header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	h.Set("X-Should-Retry", strconv.FormatBool(e.Retryable))
	if after := min(e.RetryAfter, MaxRetryAfter); after > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(after.Seconds())), 10))
		h.Set("Retry-After-Ms", strconv.FormatInt(int64(math.Ceil(float64(after)/float64(time.Millisecond))), 10))
	}
	return h
}

package provider

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

const (
	// maxWhole bounds a whole answer, and a streamed one that is put together. It is
	// the limit of a request's body too: an answer becomes part of the next request.
	maxWhole = 32 << 20
	// tailWait is how long a finished answer waits for its usage and its sentinel
	// when they do not come and the connection stays open (S14).
	tailWait = time.Second
	// tailWaitKnown is the same when usage has already come, so that only the
	// sentinel is missing.
	tailWaitKnown = 100 * time.Millisecond
	// reuseWait is how long Close waits for the end of a body that is complete, so
	// that its connection can serve again. It usually came in the same packet.
	reuseWait = 50 * time.Millisecond
	// reuseBytes is how much may follow a complete answer before the connection is
	// not worth it.
	reuseBytes = 4 << 10
)

// Reply is a provider's reply that has begun. It belongs to one goroutine; to end it
// from another, end the context that it was made with.
type Reply struct {
	*attempt
	out    dialect.Outbound
	status int
	body   io.ReadCloser

	// decoder is nil for a whole answer.
	decoder  dialect.StreamDecoder
	chunk    neutral.Chunk
	idle     *time.Timer
	idleLeft time.Duration
	// complete is set once the body has been read to the end of the answer.
	complete bool
	err      error
}

// open looks at what kind of body this is: at its first byte, since content types
// are wrong both ways. It returns when that byte has come.
func (r *Reply) open() *failure.Failure {
	if !r.call.Stream {
		return nil
	}
	body := bufio.NewReaderSize(&firstByte{r: r.body, timer: r.firstByte}, sniffSize)
	first, err := body.Peek(1)
	switch {
	case errors.Is(err, io.EOF):
		// No body: the decoder says what that is.
	case err != nil:
		defer r.Close()
		return r.broken(err)
	case strings.IndexByte("{[<", first[0]) >= 0:
		return r.notStream(body)
	}
	r.decoder = r.out.NewStream(r.call.Request, body)
	r.idleLeft = r.limits.StreamIdle
	return nil
}

// sniffSize is the smallest buffer that bufio makes. Larger reads go past it.
const sniffSize = 16

// notStream names a reply that should have been a stream: an error object under a
// 200, or the page of a proxy in between. A whole answer in it is no use either: it
// was asked for as a stream because it may be long.
func (r *Reply) notStream(body io.Reader) *failure.Failure {
	defer r.Close()
	stop(r.firstOutput)
	stall := r.arm(r.limits.ErrorBody, failure.BadPayload, "error_body_stalled")
	defer stall.Stop()
	read, err := io.ReadAll(io.LimitReader(body, maxErrorBody))
	if errors.Is(err, errEncoding) {
		return r.bad("content_encoding")
	}
	if f := r.ended(); f != nil && f.Code != "error_body_stalled" {
		return f
	}
	if _, f := r.out.DecodeWhole(r.call.Request, read); f != nil {
		f.Status = r.status
		return f
	}
	return r.bad("not_a_stream")
}

// Status is the provider's HTTP status, a 2xx.
func (r *Reply) Status() int { return r.status }

// Tally is what a stream has said so far. It is empty for a whole answer.
func (r *Reply) Tally() neutral.Tally {
	if r.decoder == nil {
		return neutral.Tally{}
	}
	return *r.decoder.Tally()
}

// errWhole is a whole answer read as a stream: a fault of the caller of this package.
var errWhole = errors.New("provider: Next on a whole answer")

// Next is the next chunk of a stream. Its memory is used again by the call after,
// so whoever holds chunks back must copy them.
//
// The error is io.EOF after an answer that ended as it should, else a
// *failure.Failure; it stays the same from then on.
func (r *Reply) Next() (*neutral.Chunk, error) {
	if r.err != nil {
		return nil, r.err
	}
	if r.decoder == nil {
		return nil, errWhole
	}
	began := r.wait()
	err := r.decoder.Next(&r.chunk)
	r.waited(began)
	if err != nil {
		r.err = r.finish(err)
		return nil, r.err
	}
	if r.chunk.Generation() {
		r.idleLeft = r.limits.StreamIdle
		if r.chunk.Semantic() {
			stop(r.firstOutput)
		}
	}
	return &r.chunk, nil
}

// Ready reports whether Next will return at once: the provider has already sent the
// next chunk. It ends the life of the chunk before.
func (r *Reply) Ready() bool { return r.err == nil && r.decoder != nil && r.decoder.Ready() }

// wait starts the clock of a read. It runs only while a read waits for the
// provider: a caller who takes his time must not make the provider look silent
// (S9). Before the first output the limits of first byte and first output hold, not
// this one: a model may think for longer than it may pause (W11).
func (r *Reply) wait() time.Time {
	tally := r.decoder.Tally()
	switch {
	case r.decoder.Ready():
		return time.Time{}
	case r.decoder.Finished():
		left := tailWait
		if tally.HasUsage {
			left = tailWaitKnown
		}
		r.idleLeft = min(r.idleLeft, left)
	case !tally.Committed():
		return time.Time{}
	}
	if r.idle == nil {
		r.idle = r.arm(r.idleLeft, failure.StreamTruncated, "stream_idle")
	} else {
		r.idle.Reset(r.idleLeft)
	}
	return time.Now()
}

func (r *Reply) waited(began time.Time) {
	if began.IsZero() {
		return
	}
	r.idle.Stop()
	r.idleLeft -= time.Since(began)
}

// finish turns what ended the reading into io.EOF or one class.
func (r *Reply) finish(err error) error {
	if errors.Is(err, io.EOF) {
		r.complete = true
		return io.EOF
	}
	f, ok := errors.AsType[*failure.Failure](err)
	if !ok {
		f = r.broken(err)
	}
	f.Status = r.status
	return f
}

// broken names a body that could not be read on.
func (r *Reply) broken(err error) *failure.Failure {
	if errors.Is(err, errEncoding) {
		return r.bad("content_encoding")
	}
	f := r.lost(err)
	f.Status = r.status
	return f
}

// Answer is the whole reply, put together from the stream where one was asked for.
// There is no half answer: a break is a failure (S3).
func (r *Reply) Answer() (neutral.Answer, *failure.Failure) {
	if r.decoder != nil {
		return r.aggregate()
	}
	body, err := io.ReadAll(io.LimitReader(r.body, maxWhole+1))
	switch {
	case err != nil:
		f := r.broken(err)
		if f.Class == failure.TimeoutFirstByte {
			// It has begun to answer.
			f.Class = failure.TimeoutAttempt
		}
		return neutral.Answer{}, f
	case len(body) > maxWhole:
		return neutral.Answer{}, r.bad("reply_too_large")
	}
	r.complete = true
	answer, f := r.out.DecodeWhole(r.call.Request, body)
	if f != nil {
		f.Status = r.status
	}
	return answer, f
}

func (r *Reply) bad(code string) *failure.Failure {
	return &failure.Failure{Class: failure.BadPayload, Code: code, Status: r.status, PossiblyBilled: true}
}

func (r *Reply) aggregate() (neutral.Answer, *failure.Failure) {
	agg := r.out.NewAggregate(r.call.Request)
	size := 0
	for {
		chunk, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			answer, err := agg.Answer()
			if err != nil {
				return neutral.Answer{}, r.bad("not_aggregable")
			}
			return answer, nil
		case err != nil:
			f, _ := errors.AsType[*failure.Failure](err)
			return neutral.Answer{}, f
		}
		if size += len(chunk.Raw); size > maxStreamed {
			return neutral.Answer{}, r.bad("reply_too_large")
		}
		if err := agg.Add(chunk); err != nil {
			return neutral.Answer{}, r.bad("not_aggregable")
		}
	}
}

// maxStreamed bounds the frames of a stream that is put together. A token's frame
// is some 300 bytes around a few of text.
const maxStreamed = 16 * maxWhole

// DrainLimits bound what is read after a client has left (S7).
type DrainLimits struct {
	Time  time.Duration
	Bytes int
}

// Drain reads a stream on, within limits and for nobody, to learn the usage that
// will be billed anyway. It reports whether the answer came to its end.
func (r *Reply) Drain(limits DrainLimits) bool {
	if r.decoder == nil || r.err != nil {
		return errors.Is(r.err, io.EOF)
	}
	timer := r.arm(limits.Time, failure.ClientCancelled, "drain_time")
	defer timer.Stop()
	for size := 0; size <= limits.Bytes; {
		chunk, err := r.Next()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		size += len(chunk.Raw)
	}
	return false
}

// Close ends the upstream call at once if it is still running (S7). It may be
// called more than once.
func (r *Reply) Close() {
	if r.complete && r.ended() == nil {
		timer := time.AfterFunc(reuseWait, func() { r.cancel(errClosed) })
		_, _ = io.CopyN(io.Discard, r.body, reuseBytes)
		timer.Stop()
	}
	r.end()
	if r.idle != nil {
		r.idle.Stop()
	}
	_ = r.body.Close()
}

// readError is an error of the body. It hides what it wraps: net/http returns the
// cause of a context that is over, which for a timer is a *failure.Failure, and that
// must not pass for one that the decoder found.
type readError struct{ err error }

func (e *readError) Error() string { return "provider: body: " + e.err.Error() }

// Is finds sentinels only.
func (e *readError) Is(target error) bool { return errors.Is(e.err, target) }

// firstByte stops the limit of the first byte when that has come.
type firstByte struct {
	r     io.Reader
	timer *time.Timer
}

func (f *firstByte) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if n > 0 && f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	if err != nil && err != io.EOF {
		err = &readError{err}
	}
	return n, err
}

package fakeprovider

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"
)

// call is one model call on its way through the server.
type call struct {
	server  *Server
	dialect dialect
	w       http.ResponseWriter
	r       *http.Request
	// ctx ends when the client leaves or the server closes.
	ctx   context.Context
	plan  *plan
	in    request
	facts callFacts

	status    int
	bytes     int64
	delivered int // output tokens written
	planned   *answer
}

// serveCall reads a model call, writes it to the ledger, and does what its
// plan says.
func (s *Server) serveCall(d dialect, w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.leave()

	ctx := r.Context()
	if ctx.Value(servedBy{}) != s { // an http.Server of somebody else's: join its context and ours
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.closing, cancel)()
	}

	key := keyOf(r.Header)
	entry := Call{At: time.Now(), Path: r.URL.Path, KeyLast4: last4(key), IdempotencyKey: r.Header.Get("Idempotency-Key")}
	body, readErr := readBody(r.Body, r.ContentLength, s.options.MaxBodyBytes)
	entry.RequestBytes = int64(len(body))
	c := &call{server: s, dialect: d, w: w, r: r, ctx: ctx}
	c.plan, c.in = s.planOf(d, r, body, readErr, key)
	entry.Model, entry.Stream, entry.Outcome = c.in.model, c.in.stream, c.plan.name
	c.facts = callFacts{sequence: s.ledger.open(entry), model: c.in.model}

	end := c.run()
	finished := end != endStall && end != endSilent
	s.ledger.update(c.facts.sequence, func(entry *Call) {
		entry.Done = true
		entry.Status = c.status
		entry.ResponseBytes = c.bytes
		entry.ClientGone = !finished && s.closing.Err() == nil
		c.bill(entry)
	})
	c.tearDown(end)
}

// ownFailure is a plan that the server makes itself: an error of the test, not
// a fault under test.
func ownFailure(name, kind string) *plan {
	return &plan{name: name, failure: &failure{kind: kind}}
}

// planOf chooses the plan; what cannot be read or is not known gets an error
// that names the cause.
func (s *Server) planOf(d dialect, r *http.Request, body []byte, readErr error, key string) (*plan, request) {
	if readErr != nil {
		return ownFailure("unreadable", "too_large"), request{}
	}
	in, err := d.parse(r, body)
	if errors.Is(err, errUnsigned) {
		return ownFailure("unsigned", "auth"), in
	}
	if err != nil {
		return ownFailure("unparsable", "invalid"), in
	}
	p, err := s.director.plan(in.model, key)
	if err != nil {
		return ownFailure("unknown: "+err.Error(), "model_missing"), in
	}
	return p, in
}

// run carries the plan out and returns how the body has to end.
func (c *call) run() endHow {
	if c.in.stream {
		c.server.openStreams.Add(1)
		defer c.server.openStreams.Add(-1)
	}
	if !c.wait(c.plan.delay) {
		return endSilent
	}
	if c.plan.failure != nil {
		return c.fail(c.plan.failure)
	}
	switch c.plan.head {
	case headReset:
		return endRST
	case headClose:
		return endFIN
	case headSilence:
		return c.silence()
	case headOnly:
		c.begin(c.contentType())
		return c.silence()
	case headTrickle:
		return c.trickle()
	case headHTML:
		return c.send(response{contentType: "text/html; charset=utf-8", body: []byte(webPage)})
	case headEmpty:
		return c.send(response{contentType: c.contentType()})
	case headAnswer:
	}
	c.planned = makeAnswer(c.plan, c.in, c.facts, time.Now().Unix())
	if c.in.stream {
		return c.stream()
	}
	return c.whole()
}

const webPage = "<!doctype html><html><head><title>Just a moment...</title></head><body>Checking your browser.</body></html>"

func (c *call) contentType() string {
	if c.in.stream {
		return c.dialect.streamType()
	}
	return "application/json"
}

// fail sends a refusal.
func (c *call) fail(f *failure) endHow {
	status, body := c.dialect.failure(*f, c.facts)
	if d, ok := c.dialect.(interface{ failureHeader(f failure) http.Header }); ok {
		maps.Copy(c.w.Header(), d.failureHeader(*f))
	}
	maps.Copy(c.w.Header(), f.header)
	if f.dateAhead > 0 {
		c.w.Header().Set("Retry-After", time.Now().Add(f.dateAhead).UTC().Format(http.TimeFormat))
	}
	contentType := "application/json"
	if bytes.HasPrefix(body, []byte("<")) {
		contentType = "text/html"
	}
	out := response{status: status, contentType: contentType, body: body}
	if f.stall {
		out.cut = &ending{how: endStall}
	}
	return c.send(out)
}

// whole sends the answer of a call that is not a stream. Faults of streams
// become what they are in one body: a cut or a stall comes in its middle.
func (c *call) whole() endHow {
	a := c.planned
	out := response{contentType: "application/json", tokens: a.usage.output}
	if in := c.plan.insert; in != nil {
		switch {
		case in.failure == nil:
			out.body = c.dialect.malformedEvent().data
			return c.send(out)
		case in.failure.kind == finishKind:
			a.finish = "error"
		default:
			_, out.body = c.dialect.failure(*in.failure, c.facts)
			out.tokens = 0
			return c.send(out)
		}
	}
	out.body = c.dialect.whole(a)
	if c.plan.ending.how != endComplete {
		out.cut = &c.plan.ending
	}
	return c.send(out)
}

// bill works out what the provider charges for what it did. An error that
// comes before any output is free.
func (c *call) bill(entry *Call) {
	switch {
	case c.plan.billAll:
		a := c.planned
		if a == nil {
			a = makeAnswer(c.plan, c.in, c.facts, 0)
		}
		entry.BilledInputTokens, entry.BilledCachedTokens, entry.BilledWrittenTokens = a.usage.input, a.usage.cached, a.usage.written
		entry.BilledOutputTokens = a.usage.output
	case c.plan.insert != nil && c.plan.insert.failure != nil && c.delivered == 0:
	case c.planned != nil:
		entry.BilledInputTokens, entry.BilledCachedTokens = c.planned.usage.input, c.planned.usage.cached
		entry.BilledWrittenTokens = c.planned.usage.written
		entry.BilledOutputTokens = c.delivered
	}
}

// wait pauses and reports whether the call is still wanted afterwards.
func (c *call) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// silence says nothing until the client leaves or the server closes.
func (c *call) silence() endHow {
	<-c.ctx.Done()
	return endSilent
}

var errTooLarge = errors.New("the body is too large")

// readBody reads a body of at most limit bytes into a buffer of its announced
// size. http.MaxBytesReader would do too, but keeps the connection's goroutine
// for half a second after the reply.
func readBody(body io.Reader, length, limit int64) ([]byte, error) {
	const largestGuess = 1 << 20 // an announced length is not yet a body
	var b bytes.Buffer
	if length > 0 {
		b.Grow(int(min(length, largestGuess)) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(body, limit+1))
	if n > limit {
		err = errTooLarge
	}
	return b.Bytes(), err
}

// keyOf finds the caller's key in any of the four headers that providers use, or the
// id of the access key that signed.
func keyOf(header http.Header) string {
	if id := accessKey(header.Get("Authorization")); id != "" {
		return id
	}
	if bearer, ok := strings.CutPrefix(header.Get("Authorization"), "Bearer "); ok {
		return bearer
	}
	for _, name := range []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if key := header.Get(name); key != "" {
			return key
		}
	}
	return ""
}

func last4(key string) string { return key[max(0, len(key)-4):] }

// compress returns the body in gzip.
func compress(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(body) // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

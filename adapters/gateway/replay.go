package gateway

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
)

// Bounds of the answers that a worker keeps for replay (I3). The log keeps the
// claim for ever and no content; an answer that fell out here is a typed 409.
const (
	replayTTL   = 10 * time.Minute
	replayBytes = 64 << 20
	// replayAnswerBytes bounds one answer, so that a single long one cannot push out
	// all others.
	replayAnswerBytes = replayBytes / 8
)

// replays holds the answers of keyed requests, and who waits for one that runs.
type replays struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[string]*replay
	// kept are the answered entries, oldest first.
	kept  *list.List
	bytes int
}

// replay is one key on this worker.
type replay struct {
	claim string
	body  string
	// done is closed when the owner's request has ended.
	done chan struct{}

	// All below is written before done is closed and only read after it.

	// answer is nil when the owner's request failed or its answer was too long.
	answer  *Outcome
	sent    []byte
	refused *apierror.Error
	until   time.Time
}

func newReplays(now func() time.Time) *replays {
	return &replays{now: now, entries: map[string]*replay{}, kept: list.New()}
}

// join finds the entry of a key, or makes it: the first caller owns it.
func (r *replays) join(claim, body string) (e *replay, owner bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.evict(0)
	if e := r.entries[claim]; e != nil {
		return e, false
	}
	e = &replay{claim: claim, body: body, done: make(chan struct{})}
	r.entries[claim] = e
	return e, true
}

// finish ends an owner's request. Whoever waited is let go; an answer is kept.
func (r *replays) finish(e *replay) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.answer == nil {
		// Whoever comes later asks the log, which knows whether the key is taken.
		delete(r.entries, e.claim)
	} else {
		r.evict(len(e.sent))
		r.bytes += len(e.sent)
		e.until = r.now().Add(replayTTL)
		r.kept.PushBack(e)
	}
	close(e.done)
}

// evict drops what is too old, and the oldest while there is no room.
func (r *replays) evict(room int) {
	now := r.now()
	for front := r.kept.Front(); front != nil; front = r.kept.Front() {
		e := front.Value.(*replay)
		if now.Before(e.until) && r.bytes+room <= replayBytes {
			return
		}
		r.kept.Remove(front)
		r.bytes -= len(e.sent)
		delete(r.entries, e.claim)
	}
}

// serveOnce answers a keyed request: it runs once, whoever asks and how often (I1,
// I2).
func (g *Gateway) serveOnce(ctx context.Context, in Incoming) *Outcome {
	tenant := in.Key.Tenant
	c := &claim{
		stream: g.Hasher.Stream(tenant, string(in.Dialect.Name()), in.Controls.IdempotencyKey),
		body:   g.Hasher.Body(in.asker(), in.Body),
	}
	e, owner := g.replays.join(c.stream, c.body)
	if owner {
		return g.own(ctx, in, c, e)
	}
	w := g.newWalker(in)
	if e.body != c.body {
		return w.failed(apierror.New(apierror.IdempotencyConflict))
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		return &Outcome{RequestID: w.id, Gone: true}
	}
	switch {
	case e.answer != nil:
		return e.again()
	case e.refused != nil:
		// Nothing ran: the refusal holds for whoever asked the same.
		refused := *e.refused
		return w.failed(&refused)
	default:
		return w.failed(apierror.New(apierror.IdempotencyReplayUnavailable))
	}
}

// asker is in whose name a body is read. The class that a request names and what its
// key is confined to decide what the same bytes ask for: without them a confined key
// would be replayed the answer of a model that it may not use (N13).
func (in *Incoming) asker() string {
	parts := []string{in.Key.Tenant}
	if class := cmp.Or(in.Key.Class, in.Controls.Class); class != "" {
		parts = append(parts, "class", class)
	}
	if len(in.Key.Models) > 0 {
		parts = append(append(parts, "models"), slices.Sorted(slices.Values(in.Key.Models))...)
	}
	return strings.Join(parts, "\x00")
}

// own runs the request for everybody who asks under its key.
func (g *Gateway) own(ctx context.Context, in Incoming, c *claim, e *replay) *Outcome {
	finished := false
	defer func() {
		// Also when the request panicked: nobody waits for an owner that is gone.
		if !finished {
			g.replays.finish(e)
		}
	}()
	out := g.serve(ctx, in, c)
	if out.Stream != nil {
		finished = true
		run := out.Stream
		out.Stream = func(ctx context.Context, w Writer) error {
			defer g.replays.finish(e)
			rec := &recorder{Writer: w}
			err := run(ctx, rec)
			if c.completed && err == nil && !rec.overflow {
				e.sent, e.answer = rec.sent, out
			}
			return err
		}
		return out
	}
	switch {
	case out.Whole != nil && len(out.Whole) <= replayAnswerBytes:
		e.sent, e.answer = out.Whole, out
	case out.Err != nil && !c.held:
		e.refused = out.Err
	}
	return out
}

// again is the answer exactly as it was given (I1).
func (e *replay) again() *Outcome {
	out := *e.answer
	out.Replayed = true
	if out.Stream != nil {
		out.Stream = func(_ context.Context, w Writer) error { return w.Write(e.sent) }
	}
	return &out
}

// recorder keeps what a stream sends, up to the bound of one answer.
type recorder struct {
	Writer
	sent     []byte
	overflow bool
}

// Write sends an event and keeps it.
func (r *recorder) Write(event []byte) error {
	if err := r.Writer.Write(event); err != nil {
		return err
	}
	if r.overflow = r.overflow || len(r.sent)+len(event) > replayAnswerBytes; r.overflow {
		r.sent = nil
		return nil
	}
	r.sent = append(r.sent, event...)
	return nil
}

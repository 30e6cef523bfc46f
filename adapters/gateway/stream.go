package gateway

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// keepAliveEvery bridges a provider's silence after the commit (S10), well inside
// the 60 s after which common proxies drop an idle connection.
const keepAliveEvery = 15 * time.Second

// streaming is a committed answer: from here on it goes to the caller as it comes,
// and no other may start (S2).
type streaming struct {
	*answer
	enc dialect.StreamEncoder
	// first is the preamble and the first output, already encoded.
	first []byte
	// end is what says that the answer is complete, held back until the settlement
	// is in the log (M17).
	end     []byte
	holding bool
}

// noteHold begins to hold back at the chunk that says why the answer ended: with
// it the caller has a complete answer.
func (s *streaming) noteHold(c *neutral.Chunk) {
	for i := range c.Events {
		if c.Events[i].Kind == neutral.Stop {
			s.holding = true
		}
	}
}

// run sends the stream to its end and settles it, whatever happens on the way.
func (s *streaming) run(ctx context.Context, out Writer) error {
	defer s.release()
	w := newAliveWriter(out, s.enc)
	defer w.stop()
	err := s.pump(w)
	if _, broke := errors.AsType[*failure.Failure](err); err != nil && !broke {
		s.drain()
	}
	return s.settle(ctx, w, err)
}

// gatherBytes bounds what goes out in one write when chunks come faster than they
// are passed on: as much as one read from a provider brings.
const gatherBytes = 16 << 10

// pump sends chunks until the answer ends. nil is a whole answer, held back from
// its stop on; a *failure.Failure is a break; anything else is a client that left.
//
// Chunks that have already come share a write, which costs far more than a chunk
// does. None of them waits for one that has not.
func (s *streaming) pump(w *aliveWriter) error {
	out := s.first
	if s.holding {
		s.end, out = s.first, nil
	}
	s.first = nil
	for {
		if len(out) > 0 && (s.holding || len(out) >= gatherBytes || !s.reply.Ready()) {
			if err := w.write(out); err != nil {
				return err
			}
			out = out[:0]
		}
		chunk, err := s.reply.Next()
		if err == nil {
			s.noteHold(chunk)
			if s.holding {
				s.end, err = encode(s.enc, s.end, chunk)
			} else {
				out, err = encode(s.enc, out, chunk)
			}
		}
		if err == nil {
			continue
		}
		if len(out) > 0 {
			// What came before the end was good.
			if werr := w.write(out); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
}

// settle writes the end of the request and then sends the end of the answer. A
// terminal event that was seen settles normally, whatever the socket did (S7).
func (s *streaming) settle(ctx context.Context, w *aliveWriter, err error) error {
	f := s.failureOf(err)
	now := s.w.g.Now()
	s.w.g.Health.Observe(&s.call.Rung, s.call.Key, s.w.caller(), f, now)
	var move walk.Move
	if f == nil {
		s.w.g.issuers.note(s.w.caller(), s.reply.Tally().Seal, s.call.Rung.Deployment.ID)
		move = s.w.machine.Completed(s.report(), now)
	} else {
		move = s.w.machine.Broken(*f, s.report(), now)
	}
	if cerr := s.w.close(ctx, string(move.Finish.Answer.Code), move.Say...); cerr != nil {
		// Not retryable: the answer was made, and its settlement is still being written.
		// Trying again would buy it twice.
		e := apierror.New(apierror.GatewayUnavailable)
		e.Retryable = false
		return s.fail(w, e)
	}
	switch {
	case f == nil:
		return w.write(s.enc.End(s.end))
	case f.Class == failure.ClientCancelled:
		return err
	default:
		return s.fail(w, apierror.New(move.Finish.Answer.Code))
	}
}

// failureOf is how the answer broke, nil when it is whole. A client that left
// after the answer had said why it ended changes nothing.
func (s *streaming) failureOf(err error) *failure.Failure {
	if err == nil {
		return nil
	}
	if t := s.reply.Tally(); s.holding && t.Finished() {
		return nil
	}
	if f, ok := errors.AsType[*failure.Failure](err); ok {
		return f
	}
	return &failure.Failure{Class: failure.ClientCancelled}
}

// fail ends the stream truthfully: an error event and no success terminator (S3).
func (s *streaming) fail(w *aliveWriter, e *apierror.Error) error {
	e.RequestID = s.w.id
	return w.write(s.enc.Fail(nil, e))
}

// aliveWriter sends events, and a keep-alive when none was sent for a while. It
// has a timer and no goroutine: most streams never need it, and all would pay.
type aliveWriter struct {
	mu    sync.Mutex
	out   Writer
	enc   dialect.StreamEncoder
	last  time.Time
	timer *time.Timer
	over  bool
}

func newAliveWriter(out Writer, enc dialect.StreamEncoder) *aliveWriter {
	w := &aliveWriter{out: out, enc: enc, last: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(keepAliveEvery, w.keepAlive)
	return w
}

func (w *aliveWriter) write(event []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
	return w.out.Write(event)
}

func (w *aliveWriter) keepAlive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if time.Since(w.last) >= keepAliveEvery {
		w.last = time.Now()
		// A write that fails will fail for the pump too, which then ends the stream.
		_ = w.out.Write(w.enc.KeepAlive(nil))
	}
	w.timer.Reset(keepAliveEvery - time.Since(w.last))
}

func (w *aliveWriter) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}

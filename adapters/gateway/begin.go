package gateway

import (
	"errors"
	"io"

	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// Bounds of what is held back before the commit.
const (
	// preambleBytes: role chunks and comments are tens of bytes, so a megabyte of them
	// is no preamble.
	preambleBytes = 1 << 20
	// refusalBytes and refusalEvents bound a refusal that may yet be answered
	// elsewhere (W7, fixed).
	refusalBytes  = 64 << 10
	refusalEvents = 256
	// holdBytes is the longest answer that is held until it is complete (S13); past
	// it the stream commits.
	holdBytes = 8 << 20
)

// begin reads a stream up to the point where it commits. Until then nothing has
// been sent, and a failure may still go to another route (S5).
func (a *answer) begin() (walk.Move, *Outcome) {
	enc := a.w.in.Dialect.NewStream(a.w.req, a.w.replyMeta())
	var held []byte
	for events := 1; ; events++ {
		chunk, err := a.reply.Next()
		if errors.Is(err, io.EOF) && a.completeHeld() {
			return a.commit(&streaming{answer: a, enc: enc, first: held, holding: true})
		}
		if err == nil {
			held, err = encode(enc, held, chunk)
		}
		if err != nil {
			return a.brokenBefore(err), nil
		}
		if a.ttft == 0 && chunk.Semantic() {
			a.ttft = a.w.g.Now().Sub(a.begun)
		}
		if a.commits(len(held), events) {
			s := &streaming{answer: a, enc: enc, first: held}
			s.noteHold(chunk)
			return a.commit(s)
		}
		if a.ttft == 0 && len(held) > preambleBytes {
			return a.brokenBefore(&failure.Failure{Class: failure.BadPayload, Code: "preamble_too_large", PossiblyBilled: true}), nil
		}
	}
}

func (a *answer) commit(s *streaming) (walk.Move, *Outcome) {
	return walk.Move{}, &Outcome{RequestID: a.w.id, Facts: a.w.facts, Stream: s.run}
}

// commits reports whether the answer has begun for the caller: at its first
// semantic output (S1), unless there is a reason to hold that back too.
func (a *answer) commits(held, events int) bool {
	t := a.reply.Tally()
	switch {
	case !t.Committed():
		return false
	case a.w.in.Controls.Hold:
		return held > holdBytes
	case a.refusing(t):
		return held > refusalBytes || events > refusalEvents
	default:
		return true
	}
}

// refusing reports whether all output so far is a refusal that the model's policy
// wants answered elsewhere (W7).
func (a *answer) refusing(t neutral.Tally) bool {
	refused := t.FirstOutput == neutral.Refusal || !t.Committed() && t.Stop == neutral.StopRefusal
	return refused && a.call.Rung.Policy.FailoverOnRefusal
}

// completeHeld reports whether an answer that ended while it was held is to be
// given. One that ended properly without any output is an answer too, cut off by its
// length or a filter; a completion that is merely empty is a failure of its decoder's
// (W8). A refusal that moves on is not given.
func (a *answer) completeHeld() bool { return !a.refusing(a.reply.Tally()) }

// brokenBefore is an answer that ended before it committed.
func (a *answer) brokenBefore(err error) walk.Move {
	defer a.release()
	f, ok := errors.AsType[*failure.Failure](err)
	if !ok {
		// The proper end of a refusal that moves on.
		f = &failure.Failure{Class: failure.Refusal, Status: a.reply.Status()}
	}
	return a.w.attemptFailed(a.call, f, a.report())
}

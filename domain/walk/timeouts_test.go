package walk_test

import (
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// TestADeadlineIsNoLimitOfTheRoute_W10_W11: what ends at the request's deadline ends
// by the deadline alone. A second timer for the same moment would win some of the
// time, and count a caller's short deadline as the route's silence.
//
// Rules: W10, W11.
func TestADeadlineIsNoLimitOfTheRoute_W10_W11(t *testing.T) {
	for _, tc := range []struct {
		name        string
		stream      bool
		deadline    time.Duration
		own         time.Duration
		firstOutput time.Duration
	}{
		{"a stream with a short deadline", true, 4 * time.Second, 0, 0},
		{"a stream with a long one", true, 600 * time.Second, 0, 300 * time.Second},
		{"the deployment's own limit is nearer", true, 600 * time.Second, 30 * time.Second, 30 * time.Second},
		{"the deployment's own limit is farther", true, 600 * time.Second, 400 * time.Second, 300 * time.Second},
		{"streamed for a caller who does not stream", false, 4 * time.Second, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := firstCall(t, func(r *walk.Request) {
				r.Stream, r.Mode = tc.stream, walk.Stream
				r.Deadline, r.Admitted.DeadlineMS = noon.Add(tc.deadline), tc.deadline.Milliseconds()
			}, func(r *walk.Rung) { r.Deployment.Timeouts.FirstOutput = catalog.Duration(tc.own) }).Timeouts
			if got.FirstOutput != tc.firstOutput || got.Total != tc.deadline {
				t.Errorf("first output %s of %s, want %s", got.FirstOutput, got.Total, tc.firstOutput)
			}
		})
	}
	whole := firstCall(t, func(r *walk.Request) {
		r.Mode, r.Deadline, r.Admitted.DeadlineMS = walk.Whole, noon.Add(4*time.Second), 4000
	}).Timeouts
	// 20 s + 240 s x 1000 tokens in a million + 100 tokens at 10 a second.
	if want := 20*time.Second + 240*time.Millisecond + 10*time.Second; whole.Whole != want {
		t.Errorf("a whole answer may take %s, want %s", whole.Whole, want)
	}
}

// firstCall is what the walk asks its driver to do first.
func firstCall(t *testing.T, edit func(*walk.Request), rungs ...func(*walk.Rung)) *walk.Call {
	t.Helper()
	move := walk.New(request1(edit), []walk.Rung{rung(0, rungs...)}, &sim.World{}).Start(noon)
	if move.Call == nil {
		t.Fatalf("no call: %+v", move)
	}
	return move.Call
}

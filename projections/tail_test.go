package projections

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

// counted counts what is read from a log.
type counted struct {
	Log
	events int
}

func (c *counted) ReadAll(ctx context.Context, shard int16, after int64, limit int) ([]eventstore.Recorded, error) {
	events, err := c.Log.ReadAll(ctx, shard, after, limit)
	c.events += len(events)
	return events, err
}

// Whoever reads from wherever, while the log grows, reads what stands in the log.
func TestTailReadsTheLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := projectiontest.NewLog()
		tail := newTail(log)
		for n := range rapid.IntRange(1, 30).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "said") {
				log.Append(projectiontest.Stream(n, projectiontest.Admitted("acme"))...)
			}
			head, _ := log.Head(t.Context(), 0)
			after := rapid.Int64Range(0, head.Position).Draw(t, "after")
			limit := rapid.IntRange(1, 10).Draw(t, "limit")
			want, _ := log.ReadAll(t.Context(), 0, after, limit)
			got, err := tail.ReadAll(t.Context(), 0, after, limit)
			if err != nil || len(got) != len(want) {
				t.Fatalf("after %d limit %d: %d events, want %d, %v", after, limit, len(got), len(want), err)
			}
			for i := range got {
				if got[i].Position != want[i].Position {
					t.Fatalf("after %d: position %d, want %d", after, got[i].Position, want[i].Position)
				}
			}
		}
	})
}

// Two that follow the end of the log read each event once between them, and one
// that is behind does not spoil it.
func TestTailIsShared(t *testing.T) {
	log := &counted{Log: projectiontest.NewLog()}
	tail := newTail(log)
	read := func(after int64) int64 {
		events, err := tail.ReadAll(t.Context(), 0, after, pageEvents)
		if err != nil {
			t.Fatal(err)
		}
		return after + int64(len(events))
	}
	var one, two int64
	for n := range 100 {
		log.Log.(*projectiontest.Log).Append(projectiontest.Stream(n, projectiontest.Admitted("acme"))...)
		one, two = read(one), read(two)
		if n == 50 {
			before := log.events
			read(10)
			log.events = before
		}
	}
	if one != 100 || two != 100 || log.events != 100 {
		t.Errorf("at %d and %d after reading %d events", one, two, log.events)
	}
}

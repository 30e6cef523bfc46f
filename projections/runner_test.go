package projections_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

// quick makes a runner look often, for tests in which nobody nudges.
var quick = projections.Options{Poll: 5 * time.Millisecond}

// eventually asks the database until a condition holds; the test's own deadline is
// the only clock.
func eventually(t testing.TB, pool *pgxpool.Pool, condition string) {
	t.Helper()
	for ctx := t.Context(); ; {
		var holds bool
		if err := pool.QueryRow(ctx, "select "+condition).Scan(&holds); err != nil {
			t.Fatalf("%s: %v", condition, err)
		}
		if holds {
			return
		}
		if _, err := pool.Exec(ctx, "select pg_sleep(0.005)"); err != nil {
			t.Fatal(err)
		}
	}
}

func at(name string, position int64) string {
	return fmt.Sprintf(`exists (select from projection_checkpoints
		where name = '%s' and target = 'live' and position = %d)`, name, position)
}

// Two workers on one database: every event is folded once, by whoever leads (E3).
func TestEachEventIsFoldedOnceByManyWorkers_E3(t *testing.T) {
	url, pool := database(t, "tally")
	log := projectiontest.NewLog()
	for range 3 {
		start(t, projections.NewRunner(projectiontest.OpenPool(t, url), log, quick, &tally{name: "tally"}))
	}
	var want []int64
	for n := range 100 {
		for _, rec := range log.Append(life(n)...) {
			if rec.Type != "route_skipped" {
				want = append(want, rec.Position)
			}
		}
	}
	eventually(t, pool, at("tally", 300))
	if diff := cmp.Diff(want, positions(t, pool, "tally")); diff != "" {
		t.Fatalf("folded events (-want +got):\n%s", diff)
	}
}

// The lead passes on when its worker ends, and the next goes on where it stopped.
func TestLeadPassesOn(t *testing.T) {
	url, pool := database(t, "tally")
	log := projectiontest.NewLog(life(0)...)
	stopFirst := start(t, projections.NewRunner(projectiontest.OpenPool(t, url), log, quick, &tally{name: "tally"}))
	eventually(t, pool, at("tally", 3))
	start(t, projections.NewRunner(projectiontest.OpenPool(t, url), log, quick, &tally{name: "tally"}))
	stopFirst()
	log.Append(life(1)...)
	eventually(t, pool, at("tally", 6))
	if got := positions(t, pool, "tally"); !slices.Equal(got, []int64{1, 3, 4, 6}) {
		t.Fatalf("folded %v", got)
	}
}

// A worker that dies after it wrote the view and before it committed leaves
// neither view nor checkpoint: they are one transaction.
//
// Rules: E4.
func TestCrashBetweenViewAndCheckpointLosesAndDoublesNothing_E4(t *testing.T) {
	url, pool := database(t, "tally")
	log := projectiontest.NewLog(life(0)...)
	doomed, kill := context.WithCancel(context.Background())
	first := projections.NewRunner(projectiontest.OpenPool(t, url), log, quick,
		&tally{name: "tally", after: func([]eventstore.Recorded) { kill() }})
	first.Run(doomed)
	if got := positions(t, pool, "tally"); len(got) != 0 {
		t.Fatalf("the dead worker left %v", got)
	}
	start(t, projections.NewRunner(pool, log, quick, &tally{name: "tally"}))
	eventually(t, pool, at("tally", 3))
	if got := positions(t, pool, "tally"); !slices.Equal(got, []int64{1, 3}) {
		t.Fatalf("folded %v", got)
	}
}

// A nudge is enough to be seen: the poll of this runner never comes.
func TestNudgeWakes(t *testing.T) {
	_, pool := database(t, "tally")
	log := projectiontest.NewLog(life(0)...)
	r := projections.NewRunner(pool, log, projections.Options{Poll: time.Hour}, &tally{name: "tally"})
	start(t, r)
	eventually(t, pool, at("tally", 3))
	log.Append(life(1)...)
	r.Nudge(0, 6)
	eventually(t, pool, at("tally", 6))
}

// Nobody nudges: the poll finds what is there, and what comes (O4).
func TestLostNudgeIsFoundByPolling_O4(t *testing.T) {
	_, pool := database(t, "tally")
	log := projectiontest.NewLog(life(0)...)
	start(t, projections.NewRunner(pool, log, quick, &tally{name: "tally"}))
	eventually(t, pool, at("tally", 3))
	log.Append(life(1)...)
	eventually(t, pool, at("tally", 6))
}

// A worker whose connection is gone has lost its lead with it; it, or another, goes
// on from the checkpoint.
func TestLostConnectionIsSurvived(t *testing.T) {
	url, pool := database(t, "tally")
	log := projectiontest.NewLog(life(0)...)
	start(t, projections.NewRunner(pool, log, quick, &tally{name: "tally"}))
	for n := 1; n <= 3; n++ {
		eventually(t, pool, at("tally", int64(3*n)))
		projectiontest.Owner(t, url, `select pg_terminate_backend(pid) from pg_locks
			where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`)
		log.Append(life(n)...)
	}
	eventually(t, pool, at("tally", 12))
	if got := positions(t, pool, "tally"); !slices.Equal(got, []int64{1, 3, 4, 6, 7, 9, 10, 12}) {
		t.Fatalf("folded %v", got)
	}
}

// An event that one projection cannot fold stops that one, there and visibly; its
// neighbour goes on, and it goes on itself once it can (C15).
func TestPoisonStopsOnlyItsProjection_C15(t *testing.T) {
	_, pool := database(t, "good", "bad")
	log := projectiontest.NewLog(slices.Concat(life(0), life(1))...)
	cured := make(chan struct{})
	bad := &tally{name: "bad", before: func(_ context.Context, batch []eventstore.Recorded) error {
		select {
		case <-cured:
			return nil
		default:
		}
		for _, rec := range batch {
			if rec.Position == 4 {
				return projections.At(rec, errPoison)
			}
		}
		return nil
	}}
	r := projections.NewRunner(pool, log, quick, bad, &tally{name: "good"})
	start(t, r)
	eventually(t, pool, at("good", 6)+" and exists (select from projection_stalls where name = 'bad')")

	if got := positions(t, pool, "bad"); !slices.Equal(got, []int64{1, 3}) {
		t.Errorf("before the poison: folded %v", got)
	}
	states, err := r.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	position, shard := int64(4), int16(0)
	want := []projections.Status{
		{
			Name: "bad", Version: 1, Position: 3, Head: 6, Lag: 3,
			Stalled: &projections.Stall{Shard: &shard, Position: &position, Reason: "shard 0 position 4 (request_admitted): poison"},
		},
		{Name: "good", Version: 1, Position: 6, Head: 6},
	}
	if diff := cmp.Diff(want, states, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Stalled.Since" }, cmp.Ignore())); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}

	close(cured)
	eventually(t, pool, at("bad", 6)+" and not exists (select from projection_stalls)")
	if got := positions(t, pool, "bad"); !slices.Equal(got, []int64{1, 3, 4, 6}) {
		t.Errorf("after the cure: folded %v", got)
	}
}

// A type that this release does not know stops what adds up money, at its
// position; the others pass over it (C15, E8).
func TestUnknownTypeStopsMoneyOnly_E8(t *testing.T) {
	_, pool := database(t, "shown", "counted")
	unknown := life(1)[:1]
	unknown[0].Type = "attempt_teleported"
	newer := life(2)[:1]
	newer[0].Version = 99
	log := projectiontest.NewLog(slices.Concat(life(0), unknown, newer, life(3))...)
	r := projections.NewRunner(pool, log, quick, &tally{name: "shown"}, &tally{name: "counted", money: true})
	start(t, r)
	eventually(t, pool, at("shown", 8)+" and exists (select from projection_stalls where name = 'counted' and position = 4)")
	if got := positions(t, pool, "shown"); !slices.Equal(got, []int64{1, 3, 6, 8}) {
		t.Errorf("passed over: %v", got)
	}
	if got := positions(t, pool, "counted"); !slices.Equal(got, []int64{1, 3}) {
		t.Errorf("stopped: %v", got)
	}
	if got := positionOf(t, pool, "counted"); got != 3 {
		t.Errorf("the stopped checkpoint is at %d, want right before the event", got)
	}
}

func positionOf(t testing.TB, pool *pgxpool.Pool, name string) (position int64) {
	t.Helper()
	err := pool.QueryRow(t.Context(), "select position from projection_checkpoints where name = $1 and target = 'live'", name).Scan(&position)
	if err != nil {
		t.Fatal(err)
	}
	return position
}

// A release with another fold does not write into the view of the one that made
// it, and leaves the lead to workers that can (O6).
func TestOtherVersionIsLeftAlone_O6(t *testing.T) {
	url, pool := database(t, "tally")
	log := projectiontest.NewLog(life(0)...)
	stop := start(t, projections.NewRunner(pool, log, quick, &tally{name: "tally"}))
	eventually(t, pool, at("tally", 3))
	stop()

	start(t, projections.NewRunner(projectiontest.OpenPool(t, url), log, quick, &tally{name: "tally", version: 2}))
	eventually(t, pool, "exists (select from projection_stalls where name = 'tally' and reason like '%sluice rebuild tally')")
	log.Append(life(1)...)
	start(t, projections.NewRunner(projectiontest.OpenPool(t, url), log, quick, &tally{name: "tally"}))
	eventually(t, pool, at("tally", 6))
}

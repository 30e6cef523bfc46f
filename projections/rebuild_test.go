package projections_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

// A rebuild runs while the log grows and the live view advances, and nothing is
// missing or twice afterwards.
//
// Rules: E4.
func TestRebuildBesideLiveTraffic_E4(t *testing.T) {
	url, pool := database(t, "tally")
	log := projectiontest.NewLog()
	for n := range 50 {
		log.Append(life(n)...)
	}
	r := projections.NewRunner(pool, log, quick, &tally{name: "tally"})
	start(t, r)
	eventually(t, pool, at("tally", 150))

	grown := 50
	growing := &tally{name: "tally", after: func([]eventstore.Recorded) {
		if grown < 60 {
			log.Append(life(grown)...)
			grown++
		}
	}}
	var last projections.Progress
	rebuilder := projections.NewRebuilder(projectiontest.OpenPool(t, url), log)
	for range 2 {
		if err := rebuilder.Rebuild(t.Context(), growing, func(p projections.Progress) { last = p }); err != nil {
			t.Fatal(err)
		}
	}
	if last.Done < 150 || last.Done > last.Total {
		t.Errorf("progress ended at %+v", last)
	}
	log.Append(life(99)...)
	end := int64(grown+1) * 3
	eventually(t, pool, at("tally", end))
	var want []int64
	for p := int64(1); p <= end; p++ {
		if p%3 != 2 {
			want = append(want, p)
		}
	}
	if got := positions(t, pool, "tally"); !slices.Equal(got, want) {
		t.Fatalf("folded %v", got)
	}
}

// A switch never takes readers back in time: what the live view gained while the
// rebuild was finishing is in the new one, without a runner that catches up.
func TestSwitchDoesNotGoBack(t *testing.T) {
	_, pool := database(t, "tally")
	log := projectiontest.NewLog(life(0)...)
	stop := start(t, projections.NewRunner(pool, log, quick, &tally{name: "tally"}))
	eventually(t, pool, at("tally", 3))
	gained := false
	err := projections.NewRebuilder(pool, log).Rebuild(t.Context(), &tally{name: "tally"}, func(projections.Progress) {
		if gained {
			return
		}
		gained = true
		log.Append(life(1)...)
		eventually(t, pool, at("tally", 6))
		stop()
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := positions(t, pool, "tally"); !slices.Equal(got, []int64{1, 3, 4, 6}) {
		t.Fatalf("right after the switch: %v", got)
	}
}

// An interrupted rebuild goes on at its checkpoint: what it did is not done again
// (M15). The duplicate key of a tally would say so.
func TestRebuildIsResumed_M15(t *testing.T) {
	_, pool := database(t, "tally")
	log := projectiontest.NewLog()
	for n := range 4000 { // more than two pages
		log.Append(life(n)...)
	}
	rebuilder := projections.NewRebuilder(pool, log)
	batches := 0
	interrupted := &tally{name: "tally", before: func(context.Context, []eventstore.Recorded) error {
		if batches++; batches == 2 {
			return errPoison
		}
		return nil
	}}
	if err := rebuilder.Rebuild(t.Context(), interrupted, nil); !errors.Is(err, errPoison) {
		t.Fatalf("interrupted: %v", err)
	}
	var first int64
	resumed := &tally{name: "tally", after: func(batch []eventstore.Recorded) {
		if first == 0 {
			first = batch[0].Position
		}
	}}
	if err := rebuilder.Rebuild(t.Context(), resumed, nil); err != nil {
		t.Fatal(err)
	}
	if first <= 3 {
		t.Errorf("began again at %d", first)
	}
	if got := len(positions(t, pool, "tally")); got != 8000 {
		t.Errorf("%d rows, want 8000", got)
	}
}

// A rebuilt table is the old one in everything but its rows: keys, indexes by name,
// storage and who may read it. A later migration, and the operator's own readers,
// find what they expect.
func TestRebuildKeepsTheTable(t *testing.T) {
	url, pool := database(t, "tally")
	projectiontest.Owner(t, url, `create index on tally (type, position); alter table tally set (fillfactor = 80);
		grant select on tally to pg_monitor`)
	describe := func() (text string) {
		err := pool.QueryRow(t.Context(), `select
			(select string_agg(indexdef, e'\n' order by indexname) from pg_indexes where schemaname = 'public' and tablename = 'tally') ||
			(select relacl::text || reloptions::text from pg_class where oid = 'tally'::regclass)`).Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := describe()
	if err := projections.NewRebuilder(pool, projectiontest.NewLog(life(0)...)).Rebuild(t.Context(), &tally{name: "tally"}, nil); err != nil {
		t.Fatal(err)
	}
	if after := describe(); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// A new version of a fold takes the place of the old one's view.
func TestRebuildRaisesTheVersion(t *testing.T) {
	_, pool := database(t, "tally")
	log := projectiontest.NewLog(life(0)...)
	stop := start(t, projections.NewRunner(pool, log, quick, &tally{name: "tally"}))
	eventually(t, pool, at("tally", 3))
	stop()
	second := &tally{name: "tally", version: 2}
	if err := projections.NewRebuilder(pool, log).Rebuild(t.Context(), second, nil); err != nil {
		t.Fatal(err)
	}
	start(t, projections.NewRunner(pool, log, quick, second))
	log.Append(life(1)...)
	eventually(t, pool, at("tally", 6))
}

// Two rebuilds of one view at once would fill one shadow: the second is told.
func TestOneRebuildAtATime(t *testing.T) {
	_, pool := database(t, "tally")
	log := projectiontest.NewLog(life(0)...)
	rebuilder := projections.NewRebuilder(pool, log)
	outer := &tally{name: "tally", before: func(ctx context.Context, _ []eventstore.Recorded) error {
		return rebuilder.Rebuild(ctx, &tally{name: "tally"}, nil)
	}}
	if err := rebuilder.Rebuild(t.Context(), outer, nil); !errors.Is(err, projections.ErrBusy) {
		t.Fatalf("got %v", err)
	}
}

// Verify tells a view that the log would make from one that it would not (E4).
func TestVerifyFindsDrift_E4(t *testing.T) {
	_, pool := database(t, "tally")
	log := projectiontest.NewLog(slices.Concat(life(0), life(1))...)
	p := &tally{name: "tally"}
	start(t, projections.NewRunner(pool, log, quick, p))
	eventually(t, pool, at("tally", 6))
	rebuilder := projections.NewRebuilder(pool, log)

	log.Append(life(2)...) // more of the log than was live then must not matter
	report, err := rebuilder.Verify(t.Context(), p, nil)
	if err != nil || !report.OK() || report.Live.Rows < 4 {
		t.Fatalf("a right view: %+v, %v", report, err)
	}
	for name, c := range map[string]struct{ sabotage, key, is string }{
		"changed": {"update tally set type = 'request_refused' where position = 1", "0/1", "row"},
		"missing": {"delete from tally where position = 3", "0/3", "missing"},
		"extra":   {"insert into tally values (0, 1000, 'request_admitted')", "0/1000", "surplus"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := pool.Exec(t.Context(), c.sabotage); err != nil {
				t.Fatal(err)
			}
			report, err := rebuilder.Verify(t.Context(), p, nil)
			if err != nil || report.OK() {
				t.Fatalf("%+v, %v", report, err)
			}
			want := []projections.RowDrift{{Table: "tally", Key: c.key, Is: c.is}}
			if report.Drifted != 1 || !slices.Equal(report.Drifts, want) {
				t.Errorf("names %+v, want %+v", report.Drifts, want)
			}
			if err := rebuilder.Rebuild(t.Context(), p, nil); err != nil {
				t.Fatal(err)
			}
			if report, err = rebuilder.Verify(t.Context(), p, nil); err != nil || !report.OK() {
				t.Fatalf("after a rebuild: %+v, %v", report, err)
			}
		})
	}
	var shadows int
	err = pool.QueryRow(t.Context(), `select count(*) from pg_namespace where nspname like 'tally\_%'`).Scan(&shadows)
	if err != nil || shadows != 0 {
		t.Errorf("%d shadows left, %v", shadows, err)
	}
}

// A report of rows that differ is bounded; its count is not.
func TestVerifyNamesTheFirstRows(t *testing.T) {
	_, pool := database(t, "tally")
	log := projectiontest.NewLog(life(0)...)
	p := &tally{name: "tally"}
	start(t, projections.NewRunner(pool, log, quick, p))
	eventually(t, pool, at("tally", 3))
	if _, err := pool.Exec(t.Context(), "insert into tally select 1, n, '' from generate_series(1, 150) n"); err != nil {
		t.Fatal(err)
	}
	report, err := projections.NewRebuilder(pool, log).Verify(t.Context(), p, nil)
	if err != nil || report.Drifted != 150 || len(report.Drifts) != 100 {
		t.Errorf("%d counted, %d named, %v", report.Drifted, len(report.Drifts), err)
	}
}

// What live traffic adds while a view is verified is compared as well, or not at all:
// it is never drift (E4).
func TestVerifyBesideLiveTraffic_E4(t *testing.T) {
	_, pool := database(t, "tally")
	log := projectiontest.NewLog(life(0)...)
	start(t, projections.NewRunner(pool, log, quick, &tally{name: "tally"}))
	eventually(t, pool, at("tally", 3))
	grown := 1
	for range 5 {
		growing := &tally{name: "tally", before: func(context.Context, []eventstore.Recorded) error {
			log.Append(life(grown)...)
			grown++
			eventually(t, pool, at("tally", int64(grown)*3))
			return nil
		}}
		report, err := projections.NewRebuilder(pool, log).Verify(t.Context(), growing, nil)
		if err != nil || !report.OK() || report.Drifted != 0 {
			t.Fatalf("%+v, %v", report, err)
		}
	}
}

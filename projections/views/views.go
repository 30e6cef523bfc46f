// Package views lists the read models and keeps them: rebuilds one by name and
// verifies all. Commands and the admin API go through here; what is added to All is
// run, rebuilt and verified everywhere.
package views

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/audit"
	"github.com/sluice-gateway/sluice/projections/bills"
	"github.com/sluice-gateway/sluice/projections/budgets"
	"github.com/sluice-gateway/sluice/projections/holds"
	"github.com/sluice-gateway/sluice/projections/requests"
)

// Budgets is the name of the one view that the append's transaction keeps (E5).
const Budgets = "budgets"

// All are the views that follow the log by themselves, for the runner.
func All() []projections.Projection {
	return []projections.Projection{requests.Projection{}, bills.Projection{}, holds.Projection{}}
}

// Names are all views that can be rebuilt.
func Names() []string {
	names := []string{Budgets}
	for _, p := range All() {
		names = append(names, p.Name())
	}
	slices.Sort(names)
	return names
}

// UnknownError is a name that is no view's.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no projection %q; there are %v", e.Name, Names())
}

// Store is what keeping the views needs of the event store.
type Store interface {
	audit.Log
	RebuildCounters(ctx context.Context, shard int16, effects eventstore.Effects, progress func(position, head int64)) (eventstore.Rebuild, error)
	CompareCounters(ctx context.Context, shard int16, effects eventstore.Effects, progress func(position, head int64)) (eventstore.Comparison, error)
}

// Keeper rebuilds and verifies.
type Keeper struct {
	pool    *pgxpool.Pool
	store   Store
	shards  []int16
	rebuild *projections.Rebuilder
}

// NewKeeper prepares; no shards means shard 0 alone.
func NewKeeper(pool *pgxpool.Pool, store Store, shards ...int16) *Keeper {
	if len(shards) == 0 {
		shards = []int16{0}
	}
	return &Keeper{pool: pool, store: store, shards: shards, rebuild: projections.NewRebuilder(pool, store, shards...)}
}

// Progress tells how far the work on a view has come; see projections.Progress.
type Progress = func(projections.Progress)

// Rebuild makes a view again beside live traffic and puts it in place (M15).
// progress may be nil. The error is an *UnknownError for a name that is none.
func (k *Keeper) Rebuild(ctx context.Context, name string, progress Progress) error {
	if name == Budgets {
		for _, shard := range k.shards {
			if _, err := k.store.RebuildCounters(ctx, shard, budgets.Effects, counting(progress)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, p := range All() {
		if p.Name() == name {
			return k.rebuild.Rebuild(ctx, p, progress)
		}
	}
	return &UnknownError{Name: name}
}

// DryRunBills says what rebuilding the bills would change, and changes nothing.
func (k *Keeper) DryRunBills(ctx context.Context, progress Progress) (bills.Difference, error) {
	return bills.DryRun(ctx, k.rebuild, progress)
}

// Report is what `sluice verify` found.
type Report struct {
	// Lives are the invariants of every request's stream, by shard.
	Lives []audit.Report `json:"lives"`
	// Views compares each view with what the log makes (E4).
	Views []projections.Verification `json:"views"`
	// Counters does so for the budget counters, by shard.
	Counters []Counters `json:"counters"`
	// ChangedBills are closed bills that are not what was said when they were closed
	// (M14).
	ChangedBills []string `json:"changed_bills"`
}

// Counters compares a shard's budget counters with a fold of its log.
type Counters struct {
	Shard    int16  `json:"shard"`
	Events   int64  `json:"events"`
	Counters int    `json:"counters"`
	Live     string `json:"live"`
	Rebuilt  string `json:"rebuilt"`
	// Drifts lists counters that differ, the first hundred.
	Drifts []eventstore.Drift `json:"drifts,omitempty"`
}

// OK reports whether the counters are what the log says.
func (c Counters) OK() bool { return c.Live == c.Rebuilt }

// OK reports whether nothing at all was found.
func (r Report) OK() bool {
	return !slices.ContainsFunc(r.Lives, func(l audit.Report) bool { return !l.OK() }) &&
		!slices.ContainsFunc(r.Views, func(v projections.Verification) bool { return !v.OK() }) &&
		!slices.ContainsFunc(r.Counters, func(c Counters) bool { return !c.OK() }) &&
		len(r.ChangedBills) == 0
}

// Verify checks every request's life and every view against the log, beside live
// traffic. now decides which open requests are overdue. progress may be nil.
func (k *Keeper) Verify(ctx context.Context, now time.Time, progress Progress) (Report, error) {
	var report Report
	for _, shard := range k.shards {
		lives, err := audit.Run(ctx, k.store, shard, now, named(progress, "lives"))
		if err != nil {
			return report, err
		}
		report.Lives = append(report.Lives, lives)
	}
	var err error
	if report.Counters, err = k.Counters(ctx, progress); err != nil {
		return report, err
	}
	for _, p := range All() {
		v, err := k.rebuild.Verify(ctx, p, progress)
		if err != nil {
			return report, err
		}
		report.Views = append(report.Views, v)
	}
	report.ChangedBills, err = bills.Changed(ctx, k.pool)
	return report, err
}

// Counters compares the budget counters of every shard with a fold of its log. progress
// may be nil.
func (k *Keeper) Counters(ctx context.Context, progress Progress) ([]Counters, error) {
	var all []Counters
	for _, shard := range k.shards {
		c, err := k.store.CompareCounters(ctx, shard, budgets.Effects, counting(progress))
		if err != nil {
			return nil, err
		}
		all = append(all, Counters{
			Shard: shard, Events: c.Fold.Position, Counters: c.Fold.Counters,
			Live: c.LiveDigest, Rebuilt: c.Fold.Digest, Drifts: c.Drifts,
		})
	}
	return all, nil
}

// VerifyView compares one view with what the log makes of it. progress may be nil. The
// error is an *UnknownError for a name that is none, or one of projections.Verify's.
func (k *Keeper) VerifyView(ctx context.Context, name string, progress Progress) (projections.Verification, error) {
	for _, p := range All() {
		if p.Name() == name {
			return k.rebuild.Verify(ctx, p, progress)
		}
	}
	return projections.Verification{}, &UnknownError{Name: name}
}

func counting(progress Progress) func(done, total int64) { return named(progress, Budgets) }

func named(progress Progress, name string) func(done, total int64) {
	return func(done, total int64) {
		if progress != nil {
			progress(projections.Progress{Projection: name, Done: done, Total: total})
		}
	}
}

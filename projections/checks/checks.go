// Package checks makes the comparisons of a reconciliation: what is kept beside the log
// against what the log adds up to (R7). It reads in ranges, in snapshots that last as
// long as one comparison, and ends with its context; domain/reconciliation judges what
// that means.
package checks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/bills"
	"github.com/sluice-gateway/sluice/projections/holds"
	"github.com/sluice-gateway/sluice/projections/requests"
	"github.com/sluice-gateway/sluice/projections/views"
)

// Progress tells how much of a check is done, in events of the log.
type Progress = func(done, total int64)

// Checker makes the checks.
type Checker struct {
	pool   *pgxpool.Pool
	log    projections.Log
	keeper *views.Keeper
	shards []int16
}

// New prepares checks over a pool with the rights of a worker, of at least three
// connections: one holds a lock, one reads along, one works. No shards means shard 0
// alone.
func New(pool *pgxpool.Pool, store views.Store, shards ...int16) *Checker {
	if len(shards) == 0 {
		shards = []int16{0}
	}
	return &Checker{pool: pool, log: store, keeper: views.NewKeeper(pool, store, shards...), shards: shards}
}

// Look makes one check. An error means that it did not come to its end: the context's
// own, projections.ErrBusy, projections.ErrReplaced, a *projections.VersionError, an
// *event.UnknownTypeError, or the database's.
func (c *Checker) Look(ctx context.Context, check reconciliation.Check, progress Progress) (reconciliation.Finding, error) {
	switch check {
	case reconciliation.Counters:
		return c.counters(ctx, progress)
	case reconciliation.OpenHolds:
		return c.openHolds(ctx, progress)
	case reconciliation.Money:
		return c.money(ctx, progress)
	case reconciliation.MeterHolds:
		return c.view(ctx, holds.Projection{}.Name(), progress)
	case reconciliation.Requests:
		return c.view(ctx, requests.Projection{}.Name(), progress)
	case reconciliation.Bills:
		return c.bills(ctx, progress)
	default:
		return reconciliation.Finding{}, &reconciliation.UnknownCheckError{Name: check}
	}
}

func (c *Checker) counters(ctx context.Context, progress Progress) (reconciliation.Finding, error) {
	shards, err := c.keeper.Counters(ctx, seen(progress))
	if err != nil {
		return reconciliation.Finding{}, err
	}
	var f reconciliation.Finding
	var log, live string
	for _, s := range shards {
		f.Position += s.Events
		f.Compared += int64(s.Counters)
		log, live = log+s.Rebuilt, live+s.Live
		for _, d := range s.Drifts {
			key := fmt.Sprintf("%d/%s", s.Shard, d.Key)
			if d.Fold.Held != d.Live.Held {
				f.Add(reconciliation.Amounts(key+" held", d.Fold.Held, d.Live.Held))
			}
			if d.Fold.Settled != d.Live.Settled {
				f.Add(reconciliation.Amounts(key+" settled", d.Fold.Settled, d.Live.Settled))
			}
		}
	}
	f.LogDigest, f.LiveDigest = digest(log), digest(live)
	return f, nil
}

// view compares the tables of one projection with what the log makes of them.
func (c *Checker) view(ctx context.Context, name string, progress Progress) (reconciliation.Finding, error) {
	v, err := c.keeper.VerifyView(ctx, name, seen(progress))
	if err != nil {
		return reconciliation.Finding{}, err
	}
	f := reconciliation.Finding{
		Position: v.Events, Compared: v.Rebuilt.Rows,
		LogDigest:  digest(fmt.Sprint(v.Rebuilt.Rows, v.Rebuilt.Sum)),
		LiveDigest: digest(fmt.Sprint(v.Live.Rows, v.Live.Sum)),
	}
	for _, d := range v.Drifts {
		f.Add(reconciliation.Drift{Key: d.Table + " " + d.Key, Is: reconciliation.Kind(d.Is)})
	}
	f.Drifted = v.Drifted
	return f, nil
}

// bills also compares each closed bill with what was said when it was closed: a rebuild
// that makes another bill of the same log would agree with itself (M14).
func (c *Checker) bills(ctx context.Context, progress Progress) (reconciliation.Finding, error) {
	f, err := c.view(ctx, bills.Projection{}.Name(), progress)
	if err != nil {
		return f, err
	}
	changed, err := bills.Changed(ctx, c.pool)
	for _, bill := range changed {
		f.Add(reconciliation.Drift{Key: "bill " + bill, Is: reconciliation.Changed})
	}
	return f, err
}

func seen(progress Progress) views.Progress {
	return func(p projections.Progress) { progress(p.Done, p.Total) }
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

package webhooks

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/webhook"
	"github.com/sluice-gateway/sluice/projections/webhooks"
)

const (
	// watchEvery is how often the read models are looked at.
	watchEvery = 15 * time.Second
	// stallPatience is how long a read model may stand still before anybody is told: a
	// connection that broke and came back is no news.
	stallPatience = 30 * time.Second
	// sweepEvery is how often what is over is cleared away.
	sweepEvery = time.Hour
	// What was delivered is kept to be looked at, what was given up longer, and no more
	// than so much of either for each webhook.
	keepDelivered = 7 * 24 * time.Hour
	keepDead      = 30 * 24 * time.Hour
	keepMost      = 10_000
	// onceGrace outlasts what is still read of a window that has ended.
	onceGrace = 24 * time.Hour
	// sweepRows bounds one statement of a sweep; the next goes on.
	sweepRows = 5_000
)

// Keep watches the read models and clears away what is over, until ctx ends. Every worker
// runs it; one at a time does something.
func (d *Deliverer) Keep(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var swept time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := d.watch(ctx)
		if now := d.Now(); now.Sub(swept) >= sweepEvery {
			swept = now
			err = errors.Join(err, d.sweep(ctx))
		}
		if err != nil && ctx.Err() == nil {
			d.Logger.Warn("webhooks were not all looked after", "error", err)
		}
	}
}

// stall is a read model that does not follow the log.
type stall struct {
	Projection string
	Shard      *int16
	Position   *int64
	Since      time.Time
}

// watch tells of read models that stand still, once, and once when they go on. That
// stands in no log, so it is remembered in a table.
func (d *Deliverer) watch(ctx context.Context) error {
	return d.alone(ctx, func(tx pgx.Tx) error {
		now := d.Now()
		// Seen for the first time; that its reason changes does not make it another.
		_, err := tx.Exec(ctx, `
			insert into webhook_stalls (projection, seen_at, since)
			select name, $1, since from projection_stalls on conflict do nothing`, now)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			update webhook_stalls w set told = true from projection_stalls s
			where s.name = w.projection and not w.told and w.seen_at <= $1
			returning w.projection, s.shard, s.position, w.since`, now.Add(-stallPatience))
		if err != nil {
			return err
		}
		begun, err := pgx.CollectRows(rows, pgx.RowToStructByPos[stall])
		if err != nil {
			return err
		}
		for _, s := range begun {
			err := tell(ctx, tx, s, now, catalog.HookProjectionStalled, webhook.ProjectionStalled{
				Projection: s.Projection, Since: s.Since.UTC(), Shard: s.Shard, Position: s.Position,
			})
			if err != nil {
				return err
			}
		}
		return d.recovered(ctx, tx, now)
	})
}

func (d *Deliverer) recovered(ctx context.Context, tx pgx.Tx, now time.Time) error {
	rows, err := tx.Query(ctx, `
		delete from webhook_stalls w where not exists (select from projection_stalls s where s.name = w.projection)
		returning w.projection, w.since, w.told`)
	if err != nil {
		return err
	}
	type over struct {
		Projection string
		Since      time.Time
		Told       bool
	}
	ended, err := pgx.CollectRows(rows, pgx.RowToStructByPos[over])
	if err != nil {
		return err
	}
	for _, o := range ended {
		if !o.Told {
			continue
		}
		s := stall{Projection: o.Projection, Since: o.Since}
		err := tell(ctx, tx, s, now, catalog.HookProjectionRecovered, webhook.ProjectionRecovered{
			Projection: o.Projection, Since: o.Since.UTC(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func tell(ctx context.Context, tx pgx.Tx, s stall, now time.Time, typ catalog.WebhookEvent, data any) error {
	source := string(typ) + "/" + s.Projection + "/" + s.Since.UTC().Format(time.RFC3339Nano)
	return webhooks.Tell(ctx, tx, source, now, webhook.News{Type: typ, Data: data}, now)
}

// sweep clears away what is over, a bounded number of rows of each kind.
func (d *Deliverer) sweep(ctx context.Context) error {
	now := d.Now()
	return d.alone(ctx, func(tx pgx.Tx) error {
		for _, s := range []struct {
			sql  string
			args []any
		}{
			// What could not be tried in time, because its webhook is switched off or fails.
			// Of one that works everything is tried at least once, also after the gateway
			// itself was away.
			{`update webhook_deliveries set state = 'dead' where id in (
				select d.id from webhook_deliveries d join webhook_endpoints e using (tenant, webhook)
				where d.state = 'pending' and d.expires_at <= $1 and d.leased_until <= $1 and (e.disabled or e.failures > 0)
				limit $2)`, []any{now, sweepRows}},
			{
				`delete from webhook_deliveries where id in (
				select id from webhook_deliveries
				where state = 'delivered' and created_at < $1 or state = 'dead' and created_at < $2 limit $3)`,
				[]any{now.Add(-keepDelivered), now.Add(-keepDead), sweepRows},
			},
			{`delete from webhook_deliveries where id in (
				select d.id from webhook_endpoints e cross join lateral (
					select id from webhook_deliveries d
					where d.tenant = e.tenant and d.webhook = e.webhook and d.state <> 'pending'
					order by created_at desc, id desc offset $1 limit $2) d
				limit $2)`, []any{keepMost, sweepRows}},
			{`delete from webhook_once where until < $1`, []any{now.Add(-onceGrace)}},
		} {
			if _, err := tx.Exec(ctx, s.sql, s.args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// alone does something in a transaction, unless another worker does it now.
func (d *Deliverer) alone(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, d.DB, func(tx pgx.Tx) error {
		var mine bool
		err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock(hashtextextended('sluice webhooks', 0))`).Scan(&mine)
		if err != nil || !mine {
			return err
		}
		return do(tx)
	})
}

package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Status is how far one projection has come in one shard. It is read from the
// database: any worker can say it, not only the one that leads.
type Status struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
	Shard   int16  `json:"shard"`
	// Position is in the view, Head is in the log; Lag is what lies between, in
	// events.
	Position int64 `json:"position"`
	Head     int64 `json:"head"`
	Lag      int64 `json:"lag"`
	// Stalled says why the projection does not advance, nil while it does.
	Stalled *Stall `json:"stalled"`
}

// Stall is a projection that stopped.
type Stall struct {
	// Shard and Position name the event that cannot be passed; nil when the reason
	// is none.
	Shard    *int16    `json:"shard,omitempty"`
	Position *int64    `json:"position,omitempty"`
	Reason   string    `json:"reason"`
	Since    time.Time `json:"since"`
}

// Status tells about all projections of the runner, by name and shard.
func (r *Runner) Status(ctx context.Context) ([]Status, error) {
	heads := make(map[int16]int64, len(r.opts.Shards))
	for _, shard := range r.opts.Shards {
		head, err := r.log.Head(ctx, shard)
		if err != nil {
			return nil, err
		}
		heads[shard] = head.Position
	}
	var all []Status
	for _, l := range r.leads {
		for _, shard := range r.opts.Shards {
			s := Status{Name: l.Name(), Version: l.Version(), Shard: shard, Head: heads[shard]}
			if err := readStatus(ctx, r.pool, &s); err != nil {
				return nil, fmt.Errorf("status of projection %s: %w", l.Name(), err)
			}
			// The heads were read first: a view may be ahead of them by now.
			s.Lag = max(0, s.Head-s.Position)
			all = append(all, s)
		}
	}
	return all, nil
}

func readStatus(ctx context.Context, pool *pgxpool.Pool, s *Status) error {
	var reason *string
	var since *time.Time
	var stall Stall
	err := pool.QueryRow(ctx, `
		select c.position, c.version, s.shard, s.position, s.reason, s.since
		from projection_checkpoints c left join projection_stalls s on s.name = c.name
		where c.name = $1 and c.target = 'live' and c.shard = $2`, s.Name, s.Shard).
		Scan(&s.Position, &s.Version, &stall.Shard, &stall.Position, &reason, &since)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // nobody has begun yet
	}
	if err != nil {
		return err
	}
	if reason != nil && (stall.Shard == nil || *stall.Shard == s.Shard) {
		stall.Reason, stall.Since = *reason, since.UTC()
		s.Stalled = &stall
	}
	return nil
}

// stalled records why the view does not advance. It goes through the pool: the
// connection of the lead may be what failed. When even that is impossible, the
// logger has it and the lag shows it.
func (l *lead) stalled(ctx context.Context, cause error) {
	if ctx.Err() != nil {
		return // ended, not stalled
	}
	l.clean = false
	if l.reason != cause.Error() { // once, not at every retry
		l.reason = cause.Error()
		l.opts.Logger.Error("projection stalled", "projection", l.Name(), "error", cause)
	}
	var shard *int16
	var position *int64
	if e, ok := errors.AsType[*EventError](cause); ok {
		shard, position = &e.Shard, &e.Position
	}
	_, err := l.pool.Exec(ctx, `
		insert into projection_stalls as s (name, shard, position, reason) values ($1, $2, $3, $4)
		on conflict (name) do update
		set shard = excluded.shard, position = excluded.position, reason = excluded.reason, since = now()
		where (s.shard, s.position, s.reason) is distinct from (excluded.shard, excluded.position, excluded.reason)`,
		l.Name(), shard, position, cause.Error())
	if err != nil {
		l.opts.Logger.Error("stall not recorded", "projection", l.Name(), "error", err)
	}
}

// recovered removes the record of a stall, also one that a former leader left.
func (l *lead) recovered(ctx context.Context, conn *pgxpool.Conn) {
	if l.clean {
		return
	}
	if _, err := conn.Exec(ctx, `delete from projection_stalls where name = $1`, l.Name()); err != nil {
		return // the next round tries again
	}
	l.clean = true
	if l.reason != "" {
		l.reason = ""
		l.opts.Logger.Info("projection goes on", "projection", l.Name())
	}
}

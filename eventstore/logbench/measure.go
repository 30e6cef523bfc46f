package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/migrations"
)

// measure runs what o asks for, each in a database of its own.
func measure(ctx context.Context, o options) error {
	var lane, plain result
	var err error
	if wants(o, "lane") || wants(o, "each") {
		if err = inDatabase(ctx, o, func(o options) error { lane, err = alone(ctx, o); return err }); err != nil {
			return err
		}
		fmt.Printf("%-34s %s\n", fmt.Sprintf("lane, %d callers", o.Callers), &lane)
	}
	if wants(o, "each") {
		if err = inDatabase(ctx, o, func(o options) error { plain, err = each(ctx, o); return err }); err != nil {
			return err
		}
		fmt.Printf("%-34s %s\n%-34s %8.1f x\n", "one transaction each", &plain, "lane / one each", lane.perSecond()/plain.perSecond())
	}
	if wants(o, "procs") {
		var one, many result
		if err = inDatabase(ctx, o, func(o options) error { one, err = children(ctx, o, 1); return err }); err != nil {
			return err
		}
		fmt.Printf("%-34s %s\n", "1 process", &one)
		if o.Procs < 2 {
			return nil
		}
		if err = inDatabase(ctx, o, func(o options) error { many, err = children(ctx, o, o.Procs); return err }); err != nil {
			return err
		}
		fmt.Printf("%-34s %s\n%-34s %8.2f x, p50 %.2f x\n", fmt.Sprintf("%d processes, same callers", o.Procs), &many,
			"several / one", many.perSecond()/one.perSecond(), float64(many.quantile(.5))/float64(one.quantile(.5)))
	}
	if wants(o, "replay") {
		if err := inDatabase(ctx, o, func(o options) error { return replay(ctx, o) }); err != nil {
			return err
		}
	}
	if wants(o, "limits") {
		if err := limits(ctx, o); err != nil {
			return err
		}
	}
	if wants(o, "long") && o.Long > 0 {
		return inDatabase(ctx, o, func(o options) error { return long(ctx, o) })
	}
	return nil
}

func alone(ctx context.Context, o options) (result, error) {
	w, err := prepareLane(ctx, o)
	if err != nil {
		return result{}, err
	}
	defer w.close()
	return w.work(ctx)
}

// inDatabase gives fn a fresh, migrated database.
func inDatabase(ctx context.Context, o options, fn func(options) error) error {
	conn, err := pgx.Connect(ctx, o.URL)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	name := fmt.Sprintf("logbench_%d", time.Now().UnixNano())
	if _, err := conn.Exec(ctx, "create database "+name); err != nil {
		return err
	}
	defer conn.Exec(ctx, "drop database "+name+" with (force)")
	u, err := url.Parse(o.URL)
	if err != nil {
		return err
	}
	u.Path = "/" + name
	o.URL = u.String()
	if _, err := migrations.Migrate(ctx, o.URL, false); err != nil {
		return err
	}
	return fn(o)
}

// fill loads n events, as reservations of two events each, without the lane, and
// leaves a head so that appends go on from there.
func fill(ctx context.Context, o options, n int) error {
	conn, err := pgx.Connect(ctx, o.URL)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `
		insert into log_events (shard, position, events, stream, version, born, recorded_at, meta, body)
		select 0, 2 * n, 2, 'request/' || lpad(to_hex(ms), 12, '0') || '-7000-8000-' || lpad(to_hex(n), 12, '0'),
		       2, to_timestamp(ms / 1000.0), now(), '{"worker":"w1","correlation":"4bf92f3577b34da6a3ce929d0e0e4736"}',
		       'attempt_reserved 1 1764460800000000 ' || $2 || E'\n' || 'attempt_settled 1 1764460800000000 ' || $2 || E'\n'
		from (select n, (extract(epoch from now() - interval '1 hour') * 1000)::bigint + n / 100 as ms
		      from generate_series(1, $1::bigint / 2) n) numbered`, n, string(data))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `insert into log_batches values (0, 1, $1, 1, sha256(''), now())`, n/2*2)
	if err != nil {
		return err
	}
	// What a fresh load leaves to do later would be measured otherwise.
	if _, err = conn.Exec(ctx, `vacuum analyze log_events`); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `checkpoint`)
	return err
}

// replay folds a log into a counter, once undecoded as a rebuild does.
func replay(ctx context.Context, o options) error {
	if err := fill(ctx, o, o.Replay); err != nil {
		return err
	}
	s, err := eventstore.Open(ctx, eventstore.Config{URL: o.URL, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	for range 2 {
		begin := time.Now()
		var reserved, settled int
		err = s.ReadRange(ctx, 0, 0, int64(o.Replay/2*2), func(r *eventstore.Row) error {
			for raw, err := range r.All() {
				if err != nil {
					return err
				}
				switch string(raw.Type) {
				case "attempt_reserved":
					reserved++
				case "attempt_settled":
					settled++
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		took := time.Since(begin)
		fmt.Printf("%-34s %8.0f events/s   (%d events in %s)\n", "replay, undecoded", float64(reserved+settled)/took.Seconds(), reserved+settled, took.Round(time.Millisecond))
	}
	return nil
}

// long compares appends on an empty log with appends on a long one, in turns: a
// machine that others use too changes its pace in the minutes it takes to fill one.
func long(ctx context.Context, empty options) error {
	return inDatabase(ctx, empty, func(full options) error {
		begin := time.Now()
		if err := fill(ctx, full, full.Long); err != nil {
			return err
		}
		fmt.Printf("filled with %d events in %s\n", full.Long, time.Since(begin).Round(time.Second))
		var short, far result
		for range 3 {
			for _, m := range []struct {
				o   options
				all *result
			}{{empty, &short}, {full, &far}} {
				r, err := alone(ctx, m.o)
				if err != nil {
					return err
				}
				seconds := m.all.Seconds + r.Seconds
				m.all.add(r)
				m.all.Seconds = seconds
			}
		}
		fmt.Printf("%-34s %s\n%-34s %s\n%-34s %8.2f x appends/s, p50 %.2f x\n",
			"empty log", &short, fmt.Sprintf("%d events", full.Long), &far,
			"long / empty", far.perSecond()/short.perSecond(), float64(far.quantile(.5))/float64(short.quantile(.5)))
		return nil
	})
}

package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/eventstore"
)

// result is what some callers did; latencies of appends in microseconds.
type result struct {
	Appends int64
	Batches int64
	Seconds float64
	Micros  []int64
}

func (r *result) add(other result) {
	r.Appends += other.Appends
	r.Batches += other.Batches
	r.Seconds = max(r.Seconds, other.Seconds)
	r.Micros = append(r.Micros, other.Micros...)
}

func (r *result) perSecond() float64 { return float64(r.Appends) / r.Seconds }

func (r *result) quantile(q float64) time.Duration {
	if len(r.Micros) == 0 {
		return 0
	}
	slices.Sort(r.Micros)
	return time.Duration(r.Micros[int(q*float64(len(r.Micros)-1))]) * time.Microsecond
}

func (r *result) String() string {
	batch := 1.0
	if r.Batches > 0 {
		batch = float64(r.Appends) / float64(r.Batches)
	}
	return fmt.Sprintf("%8.0f appends/s   p50 %8s  p95 %8s  p99 %8s   %.1f appends a batch",
		r.perSecond(), r.quantile(.5), r.quantile(.95), r.quantile(.99), batch)
}

// data is an event of the size of a reservation's.
var data = []byte(`{"attempt":1,"deployment":"gpt-4o-mini/eu","credential":"c1","estimate":{"input_tokens":1800,"output_tokens":4096},"hold_nanousd":2727600,"basis":"table-2026-11","tier":"std"}`)

func reservation(key budget.Key) eventstore.Append {
	return eventstore.Append{
		Stream: "request/" + uuid.Must(uuid.NewV7()).String(),
		Events: []eventstore.Event{{Type: "attempt_reserved", Version: 1, At: time.Now(), Data: data}},
		Meta:   eventstore.Meta{Worker: "w1", Correlation: "4bf92f3577b34da6a3ce929d0e0e4736"},
		Checks: []budget.Check{{Key: key, Limit: 1 << 60, Ask: 2_727_600, Scope: "organization"}},
		Deltas: []budget.Delta{{Key: key, Held: 2_727_600}},
	}
}

func settlement(stream string, key budget.Key) eventstore.Append {
	return eventstore.Append{
		Stream: stream, Expected: 1, Priority: eventstore.Settlement,
		Events: []eventstore.Event{{Type: "attempt_settled", Version: 1, At: time.Now(), Data: data}},
		Meta:   eventstore.Meta{Worker: "w1", Correlation: "4bf92f3577b34da6a3ce929d0e0e4736"},
		Deltas: []budget.Delta{{Key: key, Held: -2_727_600, Settled: 2_000_000}},
	}
}

func counterKey(n, of int) budget.Key {
	return budget.Key(fmt.Sprintf("org/o%05d/usd/month/2026-11", n%of))
}

// laneWork has callers that reserve and settle through the lane, one after the other.
type laneWork struct {
	o     options
	store *eventstore.Store
}

func prepareLane(ctx context.Context, o options) (*laneWork, error) {
	s, err := eventstore.Open(ctx, eventstore.Config{URL: o.URL, LaneConns: o.LaneConns, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	w := &laneWork{o: o, store: s}
	// Connections are made and plans cached before the clock starts.
	for i := range 20 {
		if _, err := s.Append(ctx, reservation(counterKey(i, o.Counters))); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *laneWork) close() { _ = w.store.Close(context.Background()) }

func (w *laneWork) work(ctx context.Context) (result, error) {
	before := w.store.Stats()
	r, err := callers(w.o, func(caller int) (int64, func() error) {
		n := caller
		var stream string
		return 1, func() error {
			key := counterKey(n, w.o.Counters)
			if stream == "" {
				a := reservation(key)
				stream = a.Stream
				_, err := w.store.Append(ctx, a)
				return err
			}
			_, err := w.store.Append(ctx, settlement(stream, key))
			stream = ""
			n += w.o.Callers
			return err
		}
	})
	r.Batches = w.store.Stats().Batches - before.Batches
	return r, err
}

// callers runs o.Callers loops for the duration and times every step.
func callers(o options, start func(caller int) (int64, func() error)) (result, error) {
	var mu sync.Mutex
	var all result
	var failed error
	var wg sync.WaitGroup
	begin := time.Now()
	for c := range o.Callers {
		wg.Go(func() {
			weight, step := start(c)
			var mine result
			for time.Since(begin) < o.duration() {
				t := time.Now()
				if err := step(); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
				mine.Appends += weight
				mine.Micros = append(mine.Micros, time.Since(t).Microseconds())
			}
			mu.Lock()
			all.add(mine)
			mu.Unlock()
		})
	}
	wg.Wait()
	all.Seconds = time.Since(begin).Seconds()
	return all, failed
}

// each is what the lane replaces: every append a transaction of its own that takes
// the lock, checks and updates the counter and inserts, pipelined into one trip.
func each(ctx context.Context, o options) (result, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return result{}, err
	}
	config.MaxConns = int32(o.Callers)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return result{}, err
	}
	defer pool.Close()
	_, err = pool.Exec(ctx, `
		create table each_events (position bigserial primary key, stream text, version bigint, recorded_at timestamptz default now(), body text, unique (stream, version));
		create table each_counters (key text primary key, held bigint);
		insert into each_counters select 'org/o' || lpad(n::text, 5, '0') || '/usd/month/2026-11', 0 from generate_series(0, `+fmt.Sprint(o.Counters-1)+`) n`)
	if err != nil {
		return result{}, err
	}
	return callers(o, func(caller int) (int64, func() error) {
		n := caller
		return 1, func() error {
			n += o.Callers
			batch := &pgx.Batch{}
			batch.Queue("begin")
			batch.Queue("update each_counters set held = held + 1 where key = $1 and held < $2", string(counterKey(n, o.Counters)), int64(1)<<60)
			batch.Queue("insert into each_events (stream, version, body) values ($1, 1, $2)", uuid.NewString(), string(data))
			batch.Queue("commit")
			return pool.SendBatch(ctx, batch).Close()
		}
	})
}

func wants(o options, what string) bool { return slices.Contains(strings.Split(o.Run, ","), what) }

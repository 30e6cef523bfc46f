package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
	"github.com/sluice-gateway/sluice/eventstore"
)

// twelve are limits of money, requests and tokens in four windows each, none of which
// ever refuses.
func twelve() []catalog.Budget {
	var budgets []catalog.Budget
	for _, per := range []catalog.Period{catalog.PerMinute, catalog.PerHour, catalog.PerDay, catalog.PerMonth} {
		budgets = append(budgets,
			catalog.Budget{Scope: catalog.ScopeOrganization, LimitUSD: "900000000", Per: per},
			catalog.Budget{Scope: catalog.ScopeOrganization, Requests: 1 << 40, Per: per},
			catalog.Budget{Scope: catalog.ScopeOrganization, Tokens: 1 << 50, Per: per})
	}
	return budgets
}

// walkWork has callers that walk: each reserves as the walk says and settles at once.
type walkWork struct {
	o       options
	store   *eventstore.Store
	budgets []catalog.Budget
	rungs   []walk.Rung

	mu           sync.Mutex
	reservations []int64 // their latencies, in microseconds
}

func newWalkWork(ctx context.Context, o options, budgets []catalog.Budget) (*walkWork, error) {
	lane, err := prepareLane(ctx, o)
	if err != nil {
		return nil, err
	}
	in, out := decimal.RequireFromString("3"), decimal.RequireFromString("15")
	return &walkWork{o: o, store: lane.store, budgets: budgets, rungs: []walk.Rung{{
		Provider: &catalog.Provider{ID: "p1", Protocol: catalog.OpenAI, Keys: []catalog.ProviderKey{{ID: "k1", Env: "K"}}},
		Deployment: &catalog.Deployment{
			ID: "fable-5@p1", Provider: "p1", Prices: money.Prices{Input: &in, Output: &out}, Context: catalog.Context{MaxOutput: 1000},
		},
		Model: "fable-5", ExactModel: "fable-5", Root: true, Policy: catalog.Policy{}.WithDefaults(),
	}}}, nil
}

func (w *walkWork) close() { _ = w.store.Close(context.Background()) }

// one is a request: its reservation and its settlement, each an append.
func (w *walkWork) one(ctx context.Context, caller int) error {
	now := time.Now()
	id := uuid.Must(uuid.NewV7()).String()
	m := walk.New(walk.Request{
		Admitted: request.RequestAdmitted{
			Tenant: "acme", Key: fmt.Sprint("key", caller%4), Dialect: "chat", RequestedModel: "fable-5", CanonicalModel: "fable-5",
			Snapshot: "sha256:0", DeadlineMS: 600_000, MaxAttempts: 8, Estimate: request.Estimate{InputTokens: 1000, MaxOutputTokens: 100},
		},
		OutputTokens: 100, Deadline: now.Add(10 * time.Minute), Budgets: w.budgets,
	}, w.rungs, &sim.World{})
	move := m.Start(now)
	if move.Call == nil {
		return fmt.Errorf("the walk does not call: %+v", move.Finish)
	}
	stream, meta := "request/"+id, eventstore.Meta{Worker: "w1", Correlation: "4bf92f3577b34da6a3ce929d0e0e4736"}
	r, err := w.store.Append(ctx, eventstore.Append{
		Stream: stream, Meta: meta, Events: encoded(move.Say, now), Checks: move.Call.Checks, Deltas: move.Call.Deltas,
	})
	if err != nil || r.Refusal != nil {
		return fmt.Errorf("reservation: %+v, %w", r.Refusal, err)
	}
	w.mu.Lock()
	w.reservations = append(w.reservations, time.Since(now).Microseconds())
	w.mu.Unlock()
	say := m.Completed(walk.Report{
		Usage: usage.Usage{Input: usage.Of(900), CachedInput: usage.Of(500), Output: usage.Of(60)}, FirstOutput: "text",
	}, time.Now()).Say
	var deltas []budget.Delta
	for _, e := range say {
		deltas = append(deltas, budget.Effects(e)...)
	}
	_, err = w.store.Append(ctx, eventstore.Append{
		Stream: stream, Expected: r.Version, Meta: meta, Events: encoded(say, now), Deltas: deltas, Priority: eventstore.Settlement,
	})
	return err
}

func encoded(say []event.Event, at time.Time) []eventstore.Event {
	events := make([]eventstore.Event, len(say))
	for i, e := range say {
		enc := event.Encode(e)
		events[i] = eventstore.Event{Type: enc.Type, Version: enc.Version, At: at, Data: enc.Data}
	}
	return events
}

// walked is what some callers did and what it took.
type walked struct {
	result
	ours, theirs time.Duration // of the processors
}

func (w *walked) String() string {
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(max(w.Appends, 1)) }
	return fmt.Sprintf("%8.0f reservations/s   p50 %8s  p99 %8s   %.0f µs of a core each here, %.0f in PostgreSQL",
		w.perSecond(), w.quantile(.5), w.quantile(.99), each(w.ours), each(w.theirs))
}

// cost is what a reservation and its settlement take of the processors.
func (w *walked) cost() float64 {
	return float64((w.ours + w.theirs).Microseconds()) / float64(max(w.Appends, 1))
}

func (w *walked) also(other walked) {
	seconds := w.Seconds + other.Seconds
	w.add(other.result)
	w.Seconds = seconds
	w.ours, w.theirs = w.ours+other.ours, w.theirs+other.theirs
}

// walks has the callers walk for the duration.
func walks(ctx context.Context, o options, budgets []catalog.Budget) (walked, error) {
	w, err := newWalkWork(ctx, o, budgets)
	if err != nil {
		return walked{}, err
	}
	defer w.close()
	ours, theirs := cpu(os.Getpid()), sessions(ctx, o.URL)
	r, err := callers(o, func(caller int) (int64, func() error) {
		return 1, func() error { return w.one(ctx, caller) }
	})
	r.Micros = w.reservations
	return walked{result: r, ours: cpu(os.Getpid()) - ours, theirs: sessions(ctx, o.URL) - theirs}, err
}

// limits compares reservations under one limit and under twelve, in turns; and those
// under twelve with the same on a long log, if there is to be one.
func limits(ctx context.Context, o options) error {
	return inDatabase(ctx, o, func(empty options) error {
		var few, many walked
		for range 3 {
			for _, m := range []struct {
				budgets []catalog.Budget
				all     *walked
			}{{twelve()[:1], &few}, {twelve(), &many}} {
				r, err := walks(ctx, empty, m.budgets)
				if err != nil {
					return err
				}
				m.all.also(r)
			}
		}
		fmt.Printf("%-34s %s\n%-34s %s\n%-34s %8.2f x of a core, p50 %.2f x, p99 %.2f x\n", "walks under one limit", &few, "walks under twelve limits", &many,
			"twelve / one", many.cost()/few.cost(), float64(many.quantile(.5))/float64(few.quantile(.5)), float64(many.quantile(.99))/float64(few.quantile(.99)))
		if o.Long == 0 {
			return nil
		}
		return limitsOnLong(ctx, empty)
	})
}

func limitsOnLong(ctx context.Context, empty options) error {
	return inDatabase(ctx, empty, func(full options) error {
		begin := time.Now()
		if err := fill(ctx, full, full.Long); err != nil {
			return err
		}
		fmt.Printf("filled with %d events in %s\n", full.Long, time.Since(begin).Round(time.Second))
		var short, far walked
		for range 3 {
			for _, m := range []struct {
				o   options
				all *walked
			}{{empty, &short}, {full, &far}} {
				r, err := walks(ctx, m.o, twelve())
				if err != nil {
					return err
				}
				m.all.also(r)
			}
		}
		fmt.Printf("%-34s %s\n%-34s %s\n%-34s %8.2f x of a core, p50 %.2f x\n", "twelve limits, short log", &short,
			fmt.Sprintf("twelve limits, %d events", full.Long), &far,
			"twelve limits, long / short", far.cost()/short.cost(), float64(far.quantile(.5))/float64(short.quantile(.5)))
		return nil
	})
}

// tick is what /proc counts processor time in.
const tick = 10 * time.Millisecond

// cpu is what a process has used of the processors; zero where there is no /proc.
func cpu(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fields[11]) // the kernel writes numbers
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}

// sessions is what the sessions of a database that there are have used, where its server
// is on this machine.
func sessions(ctx context.Context, url string) (all time.Duration) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, `select pid from pg_stat_activity where backend_type = 'client backend' and datname = current_database()`)
	if err != nil {
		return 0
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return 0
	}
	for _, pid := range pids {
		all += cpu(pid)
	}
	return all
}

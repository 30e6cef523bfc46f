package bills_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/bills"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

// BenchmarkRebuildFromTheLog makes bills of a log in PostgreSQL, of requests that were
// each served at once: two rows, five events, one of them a settlement. -benchtime 1x.
func BenchmarkRebuildFromTheLog(b *testing.B) {
	const requests = 100_000
	url := pgtest.NewDatabase(b)
	pool := projectiontest.OpenPool(b, url)
	events := fillLog(b, url, pool, requests)
	store, err := eventstore.Open(b.Context(), eventstore.Config{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close(b.Context()) }()
	rebuilder := projections.NewRebuilder(pool, store)
	for b.Loop() {
		began, ours, theirs := time.Now(), cpu(b, os.Getpid()), cpuBelow(b, url)
		if err := rebuilder.Rebuild(b.Context(), bills.Projection{}, nil); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(events)/time.Since(began).Seconds(), "events/s")
		// What it would take of two cores that nobody else uses.
		b.ReportMetric(float64((cpu(b, os.Getpid())-ours).Microseconds())/float64(events), "µs-ours/event")
		b.ReportMetric(float64((cpuBelow(b, url)-theirs).Microseconds())/float64(events), "µs-PostgreSQL's/event")
	}
}

// cpu is what a process has used of the processors.
func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("no /proc to read the times from")
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fields[11]) // the kernel writes numbers
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// cpuBelow is what the sessions of the server that there are have used.
func cpuBelow(b *testing.B, url string) (all time.Duration) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }()
	rows, err := conn.Query(b.Context(), `select pid from pg_stat_activity where backend_type = 'client backend' and datname = current_database()`)
	if err != nil {
		b.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		b.Fatal(err)
	}
	for _, pid := range pids {
		all += cpu(b, pid)
	}
	return all
}

// fillLog writes requests past the store: what is measured is reading them.
func fillLog(b *testing.B, url string, pool *pgxpool.Pool, requests int) (events int) {
	b.Helper()
	rate := func(text string) *decimal.Decimal { d := decimal.RequireFromString(text); return &d }
	prices := money.Prices{Input: rate("3"), Output: rate("15"), CacheRead: rate("0.3"), Source: "price page, read 2026-11-01"}
	holds := []string{"org/acme/usd/month/2026-11", "org/acme/usd/day/2026-11-30"}
	takes := []request.Take{{Key: "org/acme/requests/minute/trailing", Settled: 1}, {Key: "org/acme/tokens/minute/trailing", Held: 1_000_000}}
	before := body(projectiontest.Admitted("acme"), request.AttemptReserved{
		Attempt: 1, Kind: request.KindFirst, Tenant: "acme", Provider: "p1", Model: "fable-5", Deployment: "fable-5@p1", ProviderKey: "k1",
		CredentialOwner: request.Operator, FallbackKind: request.NoFallback, Estimate: request.Estimate{InputTokens: 1000, MaxOutputTokens: 128},
		Prices: prices, Reserved: 4_920_000, Holds: holds, Takes: takes,
	})
	after := body(request.AttemptCommitted{Attempt: 1, FirstOutput: "text", TTFTMS: 120}, request.AttemptSettled{
		Attempt: 1, Tenant: "acme", Key: "k1", Provider: "p1", Model: "fable-5", Deployment: "fable-5@p1",
		CredentialOwner: request.Operator, FallbackKind: request.NoFallback, Basis: usage.BasisReported,
		Usage:   usage.Usage{Input: usage.Of(805), CachedInput: usage.Of(512), Output: usage.Of(96)},
		Amounts: request.Amounts{List: 2_472_600, Charge: 2_472_600, ProviderCost: 2_472_600}, Reserved: 4_920_000, Holds: holds, Takes: takes,
	}, request.RequestFinalized{Outcome: request.Completed, Attempts: 1, CanonicalModel: "fable-5", DurationMS: 900})
	for _, sql := range []string{
		fmt.Sprintf(`insert into log_events (shard, position, events, stream, version, born, recorded_at, meta, body)
			select 0, 5 * n - 3 + 3 * part, 2 + part, 'request/' || substr(lpad(to_hex(ms), 12, '0'), 1, 8) || '-' || substr(lpad(to_hex(ms), 12, '0'), 9) || '-7000-8000-' || lpad(to_hex(n), 12, '0'),
			       2 + 3 * part, to_timestamp(ms / 1000.0), now(), '{"worker":"w1"}', case part when 0 then $1 else $2 end
			from (select n, (extract(epoch from now() - interval '1 hour') * 1000)::bigint + n / 100 as ms from generate_series(1, %d) n) numbered,
			     generate_series(0, 1) part`, requests),
		fmt.Sprintf(`insert into log_batches values (0, 1, %d, 1, sha256(''), now())`, 5*requests),
	} {
		var args []any
		if strings.Contains(sql, "$1") {
			args = []any{before, after}
		}
		if _, err := pool.Exec(b.Context(), sql, args...); err != nil {
			b.Fatal(err)
		}
	}
	// Outside a transaction, and by who may: without it the plans are those of an empty log.
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }()
	if _, err := conn.Exec(b.Context(), `vacuum analyze log_events`); err != nil {
		b.Fatal(err)
	}
	return 5 * requests
}

// body is events as they are stored.
func body(events ...event.Event) string {
	var b strings.Builder
	for _, e := range events {
		enc := event.Encode(e)
		fmt.Fprintf(&b, "%s %d %d %s\n", enc.Type, enc.Version, projectiontest.Start.UnixMicro(), enc.Data)
	}
	return b.String()
}

package eventstore

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// The hot reads use an index in every partition they touch and touch no others.
//
// Rules: E7.
func TestHotReadsUseIndexesAndPrune_E7(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, Config{URL: url})
	var group []Append
	for range 200 {
		group = append(group, Append{Stream: newRequest(), Events: happened(1)}, Append{Stream: "tenant/" + newRequest()[8:], Events: happened(1)})
	}
	if _, err := s.AppendAll(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, url)
	mustExec(t, conn, `vacuum analyze log_events`)
	mustExec(t, conn, `analyze log_batches`)
	mustExec(t, conn, `set enable_seqscan = off`) // small tables would be scanned
	born, err := Born(newRequest())
	if err != nil {
		t.Fatal(err)
	}
	month := PartitionName(born)
	for _, c := range []struct {
		name, sql string
		args      []any
		with      []string
		without   []string
	}{
		{
			"ordered read", sqlAll,
			[]any{int16(0), int64(10), 50},
			[]string{"Merge Append", "log_events_config_shard_position_idx", month + "_shard_position_idx"},
			[]string{"Sort  (", "Seq Scan"},
		},
		{
			"configuration", sqlConfig,
			[]any{int16(0), int64(10), 50},
			[]string{"log_events_config_shard_position_idx"},
			[]string{"Seq Scan", "Sort  (", "log_events_state", month, "log_events_default"},
		},
		{
			"circuits", sqlRecentCircuits,
			[]any{float64(60), 50},
			[]string{"log_events_recent_circuits"},
			[]string{"Seq Scan", "Sort  (", "log_events_config", month, "log_events_default"},
		},
		{
			"stream", sqlStream,
			[]any{born, newRequest(), int64(1), 50},
			[]string{month + "_born_stream_expr_idx"},
			[]string{"Seq Scan", "Sort  (", "log_events_config", "log_events_default"},
		},
		{
			"kind", sqlKind,
			[]any{stateBorn, "reconciliation/", "reconciliation0", 20, 100},
			[]string{"log_events_state_born_stream_expr_idx", "stream = ANY", "stream < 'reconciliation0'"},
			[]string{"Seq Scan", "log_events_config", month, "log_events_default"},
		},
		{
			"versions", sqlVersions,
			[]any{[]time.Time{born}, []string{newRequest()}},
			[]string{month + "_born_stream_expr_idx", "never executed"},
			[]string{"Seq Scan", "Sort  ("},
		},
		{
			"head", sqlHead,
			[]any{int16(0)},
			[]string{"Index Scan Backward using log_batches_pkey"},
			[]string{"Seq Scan", "Sort  ("},
		},
		{
			"head with windows", sqlHeadWindows,
			[]any{int16(0), []string{"a/requests/minute/trailing", "b/tokens/hour/trailing"}, []int64{60e6, 3660e6}},
			[]string{"Index Scan Backward using log_batches_pkey", "Index Scan using budget_marks_pkey", "budget_counters_pkey"},
			[]string{"Seq Scan"},
		},
		{
			"counters", sqlCounters,
			[]any{int16(0), []string{"a", "b"}},
			[]string{"budget_counters_pkey"},
			[]string{"Seq Scan"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := explain(t, conn, c.sql, c.args)
			for _, part := range c.with {
				if !strings.Contains(plan, part) {
					t.Errorf("no %q in\n%s", part, plan)
				}
			}
			for _, part := range c.without {
				if strings.Contains(plan, part) {
					t.Errorf("%q in\n%s", part, plan)
				}
			}
		})
	}
}

func explain(t *testing.T, conn *pgx.Conn, sql string, args []any) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `explain (analyze, costs off, timing off, summary off) `+sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// Positions and hashes are data, so a log that was dumped and restored elsewhere
// verifies and goes on where it was. (Positions made of transaction ids would not.)
//
// Rules: E3.
func TestDumpedAndRestoredLogContinues_E3(t *testing.T) {
	for _, program := range []string{"pg_dump", "psql"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: %v", program, err)
		}
	}
	from, to := pgtest.NewDatabase(t), pgtest.NewEmptyDatabase(t)
	s := openStore(t, Config{URL: from})
	stream := newRequest()
	mustAppend(t, s, stream, 0, 2)
	mustAppend(t, s, "tenant/acme", 0, 1)
	head, err := s.Head(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dump, err := exec.CommandContext(ctx, "pg_dump", "--no-owner", "--dbname", from).Output()
	if err != nil {
		t.Fatal(err)
	}
	restore := exec.CommandContext(ctx, "psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", to)
	restore.Stdin = strings.NewReader(string(dump))
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	restored := openStore(t, Config{URL: to})
	if report, err := restored.VerifyChain(t.Context(), 0, head, nil); err != nil || report.Rows != 2 {
		t.Fatalf("%+v, %v", report, err)
	}
	if r := mustAppend(t, restored, stream, 2, 1); r.Position != 4 {
		t.Errorf("went on at %d", r.Position)
	}
}

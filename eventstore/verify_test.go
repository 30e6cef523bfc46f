package eventstore

import (
	"errors"
	"testing"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// Whoever can switch the triggers off can change anything; the chain shows it.
//
// Rules: E9.
func TestVerifyChainFindsTampering_E9(t *testing.T) {
	const row = `(0, 14, 2, 'circuit/endpoint/x', 2, '1970-01-02 00:00:00+00', now(), '{}', E'a 1 0 {}\nb 1 0 {}\n')`
	for _, c := range []struct {
		name     string
		tamper   string
		position int64
	}{
		{"untouched", `select 1`, 0},
		{"body changed", `update log_events set body = replace(body, '"n":1', '"n":2') where position = 6`, 5},
		{"column changed", `update log_events set recorded_at = recorded_at + interval '1 microsecond' where position = 6`, 5},
		{"meta changed", `update log_events set meta = '{"actor":"me"}' where position = 4`, 3},
		{"row removed", `delete from log_events where position = 4`, 3},
		{"first row removed", `delete from log_events where position = 2`, 1},
		{"row inserted beside another", `insert into log_events values (0, 4, 1, 'circuit/a/b', 1, '1970-01-02 00:00:00+00', now(), '{}', E'a 1 0 {}\n')`, 4},
		{"row inserted after the head", `insert into log_events values ` + row, 14},
		{"batch row removed", `delete from log_batches where last_position = 6`, 5},
		{"batch hash changed", `update log_batches set hash = sha256('') where last_position = 6`, 5},
		{"end cut off", `delete from log_events where position > 8; delete from log_batches where last_position > 8`, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := pgtest.NewDatabase(t)
			s := openStore(t, Config{URL: url})
			for range 6 {
				mustAppend(t, s, newRequest(), 0, 2)
			}
			known, err := s.Head(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			conn := connect(t, url)
			mustExec(t, conn, `set session_replication_role = replica`)
			for _, sql := range splitStatements(c.tamper) {
				mustExec(t, conn, sql)
			}
			report, err := s.VerifyChain(t.Context(), 0, known, nil)
			if c.position == 0 {
				if err != nil || report.Head != known || report.Rows != 6 || report.Batches != 6 {
					t.Fatalf("%+v, %v", report, err)
				}
				return
			}
			broken, ok := errors.AsType[*ChainError](err)
			if !ok || broken.Position != c.position {
				t.Fatalf("got %v, want a broken chain at %d", err, c.position)
			}
		})
	}
}

// The chain goes over batches of many rows, refusals and conflicts just the same.
//
// Rules: E9.
func TestVerifyChainOverBatchesOfManyRows_E9(t *testing.T) {
	s := openStore(t, Config{URL: pgtest.NewDatabase(t)})
	group := make([]Append, 50)
	for i := range group {
		group[i] = Append{Stream: newRequest(), Events: happened(1 + i%3)}
	}
	for range 4 {
		if _, err := s.AppendAll(t.Context(), group); err == nil {
			for i := range group {
				group[i].Stream = newRequest()
			}
		}
	}
	var progressed int64
	report, err := s.VerifyChain(t.Context(), 0, Head{}, func(position int64) { progressed = position })
	if err != nil || report.Rows != 200 || report.Batches != 4 || progressed != report.Head.Position {
		t.Fatalf("%+v, %v, progress %d", report, err, progressed)
	}
}

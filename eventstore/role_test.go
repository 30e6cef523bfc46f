package eventstore

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// The application's role cannot change an event; nor can the owner, by accident;
// and no statement of this package tries.
//
// Rules: E1.
func TestNobodyChangesAnEvent_E1(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, Config{URL: url})
	request := newRequest()
	mustAppend(t, s, request, 0, 1)
	mustAppend(t, s, "tenant/acme", 0, 1)
	born, err := Born(request)
	if err != nil {
		t.Fatal(err)
	}
	var statements []string
	for _, table := range []string{"log_events", "log_events_config", PartitionName(born), "log_batches"} {
		statements = append(statements,
			`update `+table+` set recorded_at = now()`, `delete from `+table, `truncate `+table)
	}
	for _, role := range []string{"sluice_app", "none"} {
		conn := connect(t, url)
		mustExec(t, conn, `set role `+role)
		for _, sql := range statements {
			_, err := conn.Exec(t.Context(), sql)
			pg, ok := errors.AsType[*pgconn.PgError](err)
			if !ok || pg.Code != "42501" { // insufficient_privilege
				t.Errorf("as %s: %s: got %v", role, sql, err)
			}
		}
	}
	if _, err := s.VerifyChain(t.Context(), 0, Head{}, nil); err != nil {
		t.Error(err)
	}
}

// What the store's own connections run as.
//
// Rules: E1.
func TestConnectionsDropToTheApplicationRole_E1(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, Config{URL: url})
	mustAppend(t, s, newRequest(), 0, 1)
	var role string
	if err := s.pool.QueryRow(t.Context(), `select current_user`).Scan(&role); err != nil || role != "sluice_app" {
		t.Errorf("readers run as %q, %v", role, err)
	}
	c := &laneConn{}
	defer c.close()
	if err := c.open(t.Context(), s.lanes[0].dial); err != nil {
		t.Fatal(err)
	}
	result := c.pg.ExecParams(t.Context(), `select current_user`, nil, nil, nil, nil).Read()
	if result.Err != nil || string(result.Rows[0][0]) != "sluice_app" {
		t.Errorf("the lane runs as %s, %v", result.Rows, result.Err)
	}
}

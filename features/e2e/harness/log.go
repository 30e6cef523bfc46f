package harness

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Event is one event as it stands in the database. It is read without the store's
// own code, which is part of what is tested.
type Event struct {
	Position      int64
	Stream        string
	StreamVersion int64
	Type          string
	// Data is the event's JSON.
	Data string
}

// Events reads the whole log in its order.
func (in *Installation) Events(t testing.TB) []Event {
	t.Helper()
	var events []Event
	in.query(t, "select position, events, stream, version, body from log_events order by shard, position", func(rows pgx.Rows) error {
		var position, count, version int64
		var stream, body string
		if err := rows.Scan(&position, &count, &stream, &version, &body); err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
		if int64(len(lines)) != count {
			return fmt.Errorf("row at %d says %d events and holds %d", position, count, len(lines))
		}
		for i, line := range lines {
			fields := strings.SplitN(line, " ", 4) // type version observed json
			back := count - 1 - int64(i)
			events = append(events, Event{
				Position: position - back, Stream: stream, StreamVersion: version - back,
				Type: fields[0], Data: fields[3],
			})
		}
		return nil
	})
	return events
}

// Dump is every row of every table as text.
func (in *Installation) Dump(t testing.TB) string {
	t.Helper()
	var tables []string
	in.query(t, `select format('%I.%I', schemaname, tablename) from pg_tables
		where schemaname not in ('pg_catalog', 'information_schema')`, func(rows pgx.Rows) error {
		var name string
		err := rows.Scan(&name)
		tables = append(tables, name)
		return err
	})
	var dump strings.Builder
	for _, table := range tables {
		in.query(t, "select whole::text from "+table+" whole", func(rows pgx.Rows) error {
			var row string
			err := rows.Scan(&row)
			fmt.Fprintln(&dump, table, row)
			return err
		})
	}
	return dump.String()
}

// Spending is what a tenant's budget counters hold and have settled, in nano-USD.
func (in *Installation) Spending(t testing.TB, tenant string) (held, settled int64) {
	t.Helper()
	in.query(t, "select held, settled from budget_counters where key like 'org/"+tenant+"/usd/%'", func(rows pgx.Rows) error {
		return rows.Scan(&held, &settled)
	})
	return held, settled
}

func (in *Installation) query(t testing.TB, sql string, each func(pgx.Rows) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, in.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

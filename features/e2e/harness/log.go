package harness

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Event is one event as it stands in the database. It is read without the store's
// own code, which is part of what is tested.
type Event struct {
	Position      int64
	Stream        string
	StreamVersion int64
	Type          string
	// Row is the position of the last event that was written with it: those of one
	// decision have one.
	Row int64
	// Recorded is when it was written, Observed when it happened; Observed is zero where
	// nobody said.
	Recorded, Observed time.Time
	// Worker is the process that wrote it.
	Worker string
	// Data is the event's JSON.
	Data string
}

// Events reads the whole log in its order, row by row: after a drill it is larger
// than what a test should hold.
func (in *Installation) Events(t testing.TB) iter.Seq[Event] {
	t.Helper()
	return func(yield func(Event) bool) {
		t.Helper()
		in.query(t, "select position, events, stream, version, recorded_at, coalesce(meta::json->>'worker', ''), body from log_events order by shard, position", func(rows pgx.Rows) error {
			var last Event // its numbers are the row's
			var count int64
			var body string
			if err := rows.Scan(&last.Position, &count, &last.Stream, &last.StreamVersion, &last.Recorded, &last.Worker, &body); err != nil {
				return err
			}
			lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
			if int64(len(lines)) != count {
				return fmt.Errorf("the row at %d says %d events and holds %d", last.Position, count, len(lines))
			}
			for i, line := range lines {
				fields := strings.SplitN(line, " ", 4) // type version observed json
				e, back := last, count-1-int64(i)
				e.Position, e.StreamVersion = last.Position-back, last.StreamVersion-back
				e.Type, e.Data, e.Row = fields[0], fields[3], last.Position
				micros, err := strconv.ParseInt(fields[2], 10, 64)
				if err != nil {
					return fmt.Errorf("the row at %d: %w", last.Position, err)
				}
				if micros != 0 {
					e.Observed = time.UnixMicro(micros)
				}
				if !yield(e) {
					return errStop
				}
			}
			return nil
		})
	}
}

// errStop ends a reading whose reader has seen enough.
var errStop = errors.New("stop")

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

// Query reads rows of the database; each scans one.
func (in *Installation) Query(t testing.TB, sql string, each func(pgx.Rows) error) {
	t.Helper()
	in.query(t, sql, each)
}

// Counter is what one counter holds and has settled, in its unit.
func (in *Installation) Counter(t testing.TB, key string) (held, settled int64) {
	t.Helper()
	in.query(t, "select held, settled from budget_counters where key = '"+key+"'", func(rows pgx.Rows) error {
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
		switch err := each(rows); {
		case errors.Is(err, errStop):
			return
		case err != nil:
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

package eventstore

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// Main also fails the run if a goroutine is left behind.
func TestMain(m *testing.M) { pgtest.Main(m) }

// openStore opens a store that is closed, and must close cleanly, with the test.
func openStore(t testing.TB, config Config) *Store {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// connect opens a plain connection as the server's superuser.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func mustExec(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func newRequest() string { return "request/" + uuid.Must(uuid.NewV7()).String() }

// happened makes n events.
func happened(n int) []Event {
	events := make([]Event, n)
	for i := range events {
		events[i] = Event{
			Type: "thing_happened", Version: 1, At: time.UnixMicro(1_700_000_000_000_000).UTC(),
			Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)),
		}
	}
	return events
}

// mustAppend appends n events and returns the result.
func mustAppend(t testing.TB, s *Store, stream string, expected int64, n int) Result {
	t.Helper()
	r, err := s.Append(t.Context(), Append{Stream: stream, Expected: expected, Events: happened(n)})
	if err != nil {
		t.Fatalf("append to %s: %v", stream, err)
	}
	return r
}

func splitStatements(sql string) []string { return strings.Split(sql, "; ") }

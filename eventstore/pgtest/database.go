package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/eventstore/pgserver"
)

// statementTimeout bounds making or dropping one database.
const statementTimeout = time.Minute

// NewDatabase returns the URL of a fresh, migrated database that only this test
// uses. It is dropped when the test ends, with whoever is still connected.
func NewDatabase(t testing.TB) string {
	t.Helper()
	server := Server(t)
	template, err := migratedTemplate(server)
	if err != nil {
		t.Fatal(err)
	}
	return newDatabase(t, server, template)
}

// NewEmptyDatabase is [NewDatabase] without the migrations.
func NewEmptyDatabase(t testing.TB) string {
	t.Helper()
	// template0 is the one nobody can have written to.
	return newDatabase(t, Server(t), "template0")
}

func newDatabase(t testing.TB, server *pgserver.Server, template string) string {
	t.Helper()
	name := uniqueName("sluice_test_")
	if err := execute(server, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		t.Fatalf("pgtest: cannot create a database: %v", err)
	}
	t.Cleanup(func() {
		if err := execute(server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("pgtest: cannot drop a database: %v", err)
		}
	})
	return server.URL(name)
}

// migratedTemplate returns the name of the binary's template database, which is
// made once: copying it is several times cheaper than migrating each time.
func migratedTemplate(server *pgserver.Server) (string, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.template != "" || shared.err != nil {
		return shared.template, shared.err
	}
	name := uniqueName("sluice_template_")
	if err := makeTemplate(server, name); err != nil {
		shared.err = fmt.Errorf("pgtest: cannot make the template database: %w", err)
		return "", shared.err
	}
	shared.template = name
	return name, nil
}

func makeTemplate(server *pgserver.Server, name string) error {
	if err := execute(server, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	if err := migrate(ctx, server.URL(name)); err != nil {
		return err
	}
	// Closed, because CREATE DATABASE refuses a template with sessions, and an
	// autovacuum worker is one.
	return execute(server, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false")
}

// dropTemplate matters on a server that outlives us. The caller holds shared.mu.
func dropTemplate(ctx context.Context) error {
	if shared.template == "" {
		return nil
	}
	return executeContext(ctx, shared.server, "DROP DATABASE "+shared.template+" WITH (FORCE)")
}

// uniqueName is one that no other test binary on the same server uses, made of
// letters, digits and underscores, so that it needs no quotes.
func uniqueName(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

func execute(server *pgserver.Server, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	return executeContext(ctx, server, sql)
}

func executeContext(ctx context.Context, server *pgserver.Server, sql string) error {
	conn, err := pgx.Connect(ctx, server.URL(""))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/migrations"
)

// onDatabase are the commands that work on DATABASE_URL.
var onDatabase = []string{
	"serve --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0",
	"export", "keys list", "keys create --tenant acme", "keys revoke x", "rebuild requests", "verify",
	"trail 019b3c1e-7c1a-7d58-9f3e-0a4c1c1f5b77",
}

func onEach(t *testing.T, lines []string, says string) {
	t.Helper()
	for _, line := range lines {
		t.Run(line, func(t *testing.T) { refused(t, exitFailed, says, strings.Fields(line)...) })
	}
}

func TestNoDatabaseNamed(t *testing.T) {
	setDatabase(t, "")
	onEach(t, append([]string{"migrate"}, onDatabase...), "DATABASE_URL is not set")
}

func TestDatabaseAbsent(t *testing.T) {
	u, err := url.Parse(pgtest.NewEmptyDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/not_there"
	setDatabase(t, u.String())
	onEach(t, append([]string{"migrate"}, onDatabase...), "createdb not_there")
}

// Nobody listens on port 1; and no message may show a password.
func TestDatabaseUnreachable(t *testing.T) {
	setDatabase(t, "postgres://user:hunter2@127.0.0.1:1/sluice")
	r := sluice(t, "migrate")
	if r.code != exitFailed || !strings.Contains(r.stderr, "127.0.0.1:1 cannot be reached (connection refused)") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	if strings.Contains(r.stderr, "hunter2") {
		t.Errorf("shows the password: %s", r.stderr)
	}
}

func TestSchemaNotMigrated(t *testing.T) {
	setDatabase(t, pgtest.NewEmptyDatabase(t))
	onEach(t, onDatabase, "run `sluice migrate`")
}

func TestForeignSchema(t *testing.T) {
	address := pgtest.NewEmptyDatabase(t)
	onServer(t, address, "create table invoices (id int)")
	setDatabase(t, address)
	onEach(t, append([]string{"migrate"}, onDatabase...), "another application's tables")
}

// A schema that a newer release made is not built upon and not served on.
//
// Rules: O6.
func TestNewerSchema_O6(t *testing.T) {
	address := useDatabase(t)
	onServer(t, address, "insert into goose_db_version (version_id, is_applied) values (9999, true)")
	onEach(t, append([]string{"migrate"}, onDatabase...), "run a newer sluice")
}

// Rules: O11.
func TestOtherMigrations_O11(t *testing.T) {
	address := useDatabase(t)
	onServer(t, address, "update schema_digests set digest = 'another text'")
	onEach(t, append([]string{"migrate"}, onDatabase...), "made by other migrations")
}

func TestOldServer(t *testing.T) {
	err := aboutDatabase("DATABASE_URL", "postgres://h/d", &migrations.ServerVersionError{Have: 130004, Need: 150000})
	if got := inWords(err); got != "PostgreSQL 13 is too old, 15 or newer is needed" {
		t.Error(got)
	}
}

// Rules: O6.
func TestMigrate_O6(t *testing.T) {
	setDatabase(t, pgtest.NewEmptyDatabase(t))
	dry := decode[migrated](t, must(t, "migrate", "--dry-run", "--output", "json"))
	if !dry.DryRun || len(dry.Applied) != len(migrations.All()) {
		t.Errorf("dry run: %+v", dry)
	}
	done := decode[migrated](t, must(t, "migrate", "--output", "json"))
	if done.DryRun || len(done.Applied) != len(dry.Applied) {
		t.Errorf("the dry run applied something: %+v", done)
	}
	if said := must(t, "migrate"); !strings.Contains(said, "nothing to apply") {
		t.Error(said)
	}
	must(t, "export")
}

// The commands that dev's output suggests find its private database; serve takes
// only one that was named.
//
// Rules: O8.
func TestCommandsFindDevsDatabase_O8(t *testing.T) {
	address := pgtest.NewDatabase(t)
	setDatabase(t, "")
	if err := os.WriteFile(filepath.Join(dataDir(), databaseFile), []byte(address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "keys", "list")
	refused(t, exitFailed, "DATABASE_URL is not set", "serve")
}

func onServer(t *testing.T, address, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

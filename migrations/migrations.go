// Package migrations holds the database schema as numbered SQL files, embedded
// and forward only, applies them, and says how a database stands to them.
//
// Numbering: 0001 to 0009 are the log and its inline counters; projections start
// at 0010. A released file is never edited: a database remembers the digest of
// what it was given (O11) and a worker built from another text refuses it. Old
// and new workers run side by side during a migration (O6): a migration adds;
// removing waits for the release after the last one that read what is removed.
package migrations

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the "pgx" database/sql driver goose works through
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// FS holds the migrations, NNNN_name.sql.
//
//go:embed *.sql
var FS embed.FS

// MinServerVersion is the oldest PostgreSQL the schema is tested with.
const MinServerVersion = 150000

// connectTimeout bounds how long a start-up check waits for an absent server.
const connectTimeout = 10 * time.Second

// Migration is one numbered file.
type Migration struct {
	Version int64
	Name    string
}

// All lists the embedded migrations in order.
func All() []Migration {
	names, err := fs.Glob(FS, "*.sql")
	if err != nil {
		panic(err) // the pattern is constant
	}
	slices.Sort(names)
	all := make([]Migration, 0, len(names))
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic(fmt.Sprintf("migrations: %s does not start with a number", name))
		}
		all = append(all, Migration{Version: version, Name: name})
	}
	return all
}

// Latest is the schema version this build knows.
func Latest() int64 {
	all := All()
	return all[len(all)-1].Version
}

// Digest is the SHA-256, in hex, of the text of all migrations up to a version
// (O11).
func Digest(version int64) string {
	h := sha256.New()
	for _, m := range All() {
		if m.Version > version {
			break
		}
		text, err := FS.ReadFile(m.Name)
		if err != nil {
			panic(err) // embedded
		}
		// Lengths keep two files from being read as one differently cut.
		fmt.Fprintf(h, "%s %d\n", m.Name, len(text))
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Status says how a database stands to this build.
type Status struct {
	// ServerVersion is PostgreSQL's server_version_num, 150018 for 15.18.
	ServerVersion int
	// Version is the newest applied migration, 0 for an empty database.
	Version int64
	// Latest is the newest this build knows.
	Latest int64
	// Digest is what the database recorded for Version (O11); "" if it is empty or
	// migrating was interrupted.
	Digest string
	// Pending lists what migrating would apply, in order.
	Pending []Migration
}

// Check returns nil if a worker may serve on the schema, else the typed error
// that says what is wrong. A newer schema is an error here: with additive
// migrations (O6) running workers keep running through it, but none is started on
// a schema its build does not know.
func (s Status) Check() error {
	switch {
	case s.Version > s.Latest:
		return &NewerError{Version: s.Version, Latest: s.Latest}
	case s.Digest != "" && s.Digest != Digest(s.Version):
		return &DigestError{Version: s.Version, Recorded: s.Digest, Built: Digest(s.Version)}
	case !s.complete():
		return &BehindError{Version: s.Version, Latest: s.Latest, Pending: s.Pending}
	}
	return nil
}

// complete: nothing is pending and the digest was recorded. Without one, migrating
// was interrupted on its last steps and has to be run again.
func (s Status) complete() bool { return len(s.Pending) == 0 && s.Digest != "" }

// State reads how the database at url stands to this build. Its own errors are
// ErrNoDatabase, ErrUnreachable, *ServerVersionError and ErrForeignSchema; what
// follows from the answer is Status.Check's to say.
func State(ctx context.Context, url string) (Status, error) {
	db, err := open(url)
	if err != nil {
		return Status{}, err
	}
	defer db.Close()
	return state(ctx, db)
}

// Migrate applies what is pending and returns it; with dryRun it applies nothing
// and returns what it would (O6). Several may run at once: the second waits and
// finds nothing to do. Besides State's errors it returns *NewerError and
// *DigestError: a schema this build does not know is not built upon.
func Migrate(ctx context.Context, url string, dryRun bool) ([]Migration, error) {
	db, err := open(url)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	status, err := state(ctx, db)
	if err != nil {
		return nil, err
	}
	var behind *BehindError
	if err := status.Check(); err != nil && !errors.As(err, &behind) {
		return nil, err
	}
	if dryRun || status.complete() {
		return status.Pending, nil
	}
	return apply(ctx, db)
}

func apply(ctx context.Context, db *sql.DB) ([]Migration, error) {
	// Looks once a second, for five minutes: another process may be migrating.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, FS,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	results, err := provider.Up(ctx)
	applied := make([]Migration, 0, len(results))
	for _, r := range results {
		applied = append(applied, Migration{Version: r.Source.Version, Name: r.Source.Path})
	}
	if err != nil {
		return applied, fmt.Errorf("migrations: %w", err)
	}
	_, err = db.ExecContext(ctx,
		`insert into schema_digests (version, digest) values ($1, $2) on conflict do nothing`, Latest(), Digest(Latest()))
	if err != nil {
		return applied, fmt.Errorf("migrations: record digest: %w", err)
	}
	return applied, nil
}

func open(url string) (*sql.DB, error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	db.SetMaxOpenConns(2) // goose holds its lock on one and migrates on the other
	return db, nil
}

func state(ctx context.Context, db *sql.DB) (Status, error) {
	status := Status{Latest: Latest()}
	connect, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := db.PingContext(connect); err != nil {
		return status, connectError(err)
	}
	err := db.QueryRowContext(ctx, `select current_setting('server_version_num')::int`).Scan(&status.ServerVersion)
	if err != nil {
		return status, connectError(err)
	}
	if status.ServerVersion < MinServerVersion {
		return status, &ServerVersionError{Have: status.ServerVersion, Need: MinServerVersion}
	}
	if status.Version, status.Digest, err = recorded(ctx, db); err != nil {
		return status, err
	}
	for _, m := range All() {
		if m.Version > status.Version {
			status.Pending = append(status.Pending, m)
		}
	}
	return status, nil
}

// recorded reads the version and digest the database says it has. A database with
// tables but without our version table belongs to somebody else.
func recorded(ctx context.Context, db *sql.DB) (version int64, digest string, err error) {
	var versioned, digests, tables bool
	err = db.QueryRowContext(ctx, `
		select to_regclass('goose_db_version') is not null,
		       to_regclass('schema_digests') is not null,
		       exists (select from pg_class c
		               where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
		                 and c.relname <> 'goose_db_version')`).Scan(&versioned, &digests, &tables)
	if err != nil {
		return 0, "", fmt.Errorf("migrations: %w", err)
	}
	if versioned {
		err = db.QueryRowContext(ctx,
			`select coalesce(max(version_id), 0) from goose_db_version where is_applied`).Scan(&version)
		if err != nil {
			return 0, "", fmt.Errorf("migrations: %w", err)
		}
	}
	if !digests {
		if version > 0 || tables {
			return version, "", ErrForeignSchema
		}
		return 0, "", nil
	}
	err = db.QueryRowContext(ctx,
		`select coalesce((select digest from schema_digests where version = $1), '')`, version).Scan(&digest)
	if err != nil {
		return version, "", fmt.Errorf("migrations: %w", err)
	}
	return version, digest, nil
}

// connectError types what a command can explain; the cause stays inside, it may
// name hosts and users.
func connectError(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "3D000" {
		return fmt.Errorf("%w: %w", ErrNoDatabase, err)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

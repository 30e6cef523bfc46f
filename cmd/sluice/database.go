package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/migrations"
)

// closeTimeout bounds how long a command waits for its store to close: its own
// appends are done by then.
const closeTimeout = 10 * time.Second

// database is the one that a command works on.
type database struct {
	url string
	// source is where the address came from, in the words of error messages.
	source string
	// dev is set for the private database of a running `sluice dev`.
	dev bool
}

// errNoDatabaseURL is a command that has nothing to work on.
var errNoDatabaseURL = errors.New("DATABASE_URL is not set: set it to a postgres:// URL, or start `sluice dev`, which brings its own database")

// databaseFromEnv is the database that DATABASE_URL names.
func databaseFromEnv() (database, error) {
	if address := os.Getenv("DATABASE_URL"); address != "" {
		return database{url: address, source: "DATABASE_URL"}, nil
	}
	return database{}, errNoDatabaseURL
}

// findDatabase is databaseFromEnv or, where that is not set, the private database
// of a `sluice dev` that runs on this data directory: the commands that dev's
// output suggests work as pasted. serve does not look there: a worker that serves
// from a database nobody named is a mistake found late.
func findDatabase() (database, error) {
	db, err := databaseFromEnv()
	if err == nil {
		return db, nil
	}
	path := filepath.Join(dataDir(), databaseFile)
	if address, readErr := os.ReadFile(path); readErr == nil {
		return database{url: strings.TrimSpace(string(address)), source: path + ", written by a `sluice dev` that may be gone", dev: true}, nil
	}
	return database{}, err
}

// about names the database in an error.
func (db database) about(err error) error { return aboutDatabase(db.source, db.url, err) }

// check refuses a schema that is not exactly this build's.
func (db database) check(ctx context.Context) error {
	status, err := migrations.State(ctx, db.url)
	if err != nil {
		return db.about(err)
	}
	return db.about(status.Check())
}

// openLog opens the log for a command, after the schema check.
func (db database) openLog(ctx context.Context) (*eventstore.Store, error) {
	if err := db.check(ctx); err != nil {
		return nil, err
	}
	store, err := eventstore.Open(ctx, eventstore.Config{
		URL: db.url, LaneConns: 1, ReadConns: 2,
		// What fails comes back as an error; a command's stderr is not a log.
		Logger: slog.New(slog.DiscardHandler),
	})
	return store, db.about(err)
}

// withLog runs a command's work on the log.
func withLog(ctx context.Context, work func(context.Context, *eventstore.Store) error) error {
	db, err := findDatabase()
	if err != nil {
		return err
	}
	store, err := db.openLog(ctx)
	if err != nil {
		return err
	}
	err = work(ctx, store)
	return errors.Join(err, closeStore(store))
}

func closeStore(store *eventstore.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return store.Close(ctx)
}

// openPool connects with the rights of the application, for read models.
func (db database) openPool(ctx context.Context, conns int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(db.url)
	if err != nil {
		return nil, db.about(errors.Join(migrations.ErrUnreachable, err))
	}
	config.MaxConns = conns
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "set role sluice_app; set timezone = 'UTC'", pgx.QueryExecModeSimpleProtocol)
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return pool, db.about(err)
}

// byOperator is who changes the configuration from a command line, as the log
// keeps it (Z7).
func byOperator() eventstore.Meta {
	name := "unknown"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = strings.ToValidUTF8(u.Username, "")
	}
	return eventstore.Meta{Actor: "cli:" + name}
}

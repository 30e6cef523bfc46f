package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// connectTimeout bounds one attempt to reach a server. A name that resolves to
// a host that drops packets would otherwise hang the tests for minutes.
const connectTimeout = 10 * time.Second

// external is a server that somebody else runs.
type external struct{ address *url.URL }

func (e external) url() *url.URL             { return e.address }
func (external) start(context.Context) error { return ErrNotOwned }
func (external) stop(context.Context) error  { return nil }
func (external) kill() error                 { return ErrNotOwned }
func (external) close() error                { return nil }

// openAddress uses the server that the environment names. It never falls back:
// once a variable is set, that server works or the search fails.
func openAddress(ctx context.Context, opts Options) (*Server, error) {
	for _, name := range opts.AddressEnv {
		value := os.Getenv(name)
		if value == "" {
			continue
		}
		address, err := parseAddress(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := checkServer(ctx, address); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return &Server{
			backend: external{address},
			choice:  fmt.Sprintf("PostgreSQL at %s (from %s)", address.Host, name),
		}, nil
	}
	return nil, unavailable("%s not set", strings.Join(opts.AddressEnv, ", "))
}

// parseAddress accepts URLs only: a "host=... password=..." string cannot be
// pointed at another database safely. The text of its errors never repeats the
// value, which may hold a password.
func parseAddress(value string) (*url.URL, error) {
	address, err := url.Parse(value)
	if err != nil || (address.Scheme != "postgres" && address.Scheme != "postgresql") {
		return nil, errors.New("not a postgres://user:password@host:port/database URL")
	}
	if _, err := pgx.ParseConfig(value); err != nil {
		return nil, errors.New("not a PostgreSQL address that can be used")
	}
	return address, nil
}

// checkServer connects once and refuses a server that is too old.
func checkServer(ctx context.Context, address *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, address.String())
	if err != nil {
		return fmt.Errorf("cannot connect: %w", err) // pgx names user, host and database, never the password
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()

	var version int // 150018 is 15.18
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		return fmt.Errorf("cannot read the server's version: %w", err)
	}
	if major := version / 10000; major < MinMajorVersion {
		return fmt.Errorf("PostgreSQL %d is too old, %d is needed", major, MinMajorVersion)
	}
	return nil
}

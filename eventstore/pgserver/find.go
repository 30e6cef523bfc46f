package pgserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// MinMajorVersion is the oldest PostgreSQL that Sluice runs on: 15 brought
// CREATE DATABASE ... STRATEGY WAL_LOG, NULLS NOT DISTINCT and MERGE.
const MinMajorVersion = 15

// Options say what kind of server is wanted. The zero value is a throwaway
// cluster for tests.
type Options struct {
	// AddressEnv names the environment variables that may hold a postgres://
	// URL, the first one set wins. Empty means that the environment is not
	// asked, which is right for a test that has to kill its server.
	AddressEnv []string

	// DataDir keeps the cluster between runs. Empty means a temporary
	// directory that [Server.Stop] removes. One process at a time may use a
	// directory; a second one gets [*InUseError].
	DataDir string

	// Durable keeps what was committed through a crash (fsync on). Off, a
	// commit is as visible and as ordered as ever but a crash may lose it and
	// the cluster with it: right for tests that never crash their server.
	Durable bool
}

// source is one way to get a PostgreSQL. open returns an [*unavailableError]
// when that way does not exist here; any other error ends the search.
type source struct {
	name string
	open func(context.Context, Options) (*Server, error)
}

// sources is the order that the package promises.
func sources() []source {
	return []source{
		{"address", openAddress},
		{"local programs", openLocal},
		{"Docker", openContainer},
		{"download", openDownload},
	}
}

// unavailableError says that a source does not exist on this machine. The
// reason is shown to the user and holds no secrets.
type unavailableError struct{ reason string }

func (e *unavailableError) Error() string { return e.reason }

func unavailable(format string, args ...any) error {
	return &unavailableError{fmt.Sprintf(format, args...)}
}

// NotFoundError is returned by [Find] when no source can give a PostgreSQL.
// Its text is for people: it lists what was tried and what to do.
type NotFoundError struct {
	AddressEnv []string
	Tried      []string // "Docker: no daemon answers", one a source
}

func (e *NotFoundError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no PostgreSQL %d or newer found. Do one of these:", MinMajorVersion)
	if len(e.AddressEnv) > 0 {
		fmt.Fprintf(&b, "\n  - set %s to a postgres:// URL", e.AddressEnv[0])
	}
	b.WriteString("\n  - install the server programs (Debian, Ubuntu: apt install postgresql; macOS: brew install postgresql@16)")
	b.WriteString("\n  - start Docker")
	b.WriteString("\n  - let this machine reach the internet, so that the programs can be downloaded")
	b.WriteString("\nTried:")
	for _, t := range e.Tried {
		b.WriteString("\n  - " + t)
	}
	return b.String()
}

// Find returns a PostgreSQL that accepts connections. The caller owns it and
// must call [Server.Stop]. ctx bounds the search and the start only; the server
// outlives it.
//
// Errors: [*NotFoundError], [*InUseError], ctx's error, or a sentence that says
// which choice was there and why it could not be used.
func Find(ctx context.Context, opts Options) (*Server, error) {
	return find(ctx, opts, sources())
}

func find(ctx context.Context, opts Options, from []source) (*Server, error) {
	missing := &NotFoundError{AddressEnv: opts.AddressEnv}
	for _, src := range from {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		server, err := src.open(ctx, opts)
		if err == nil {
			return server, nil
		}
		if _, ok := errors.AsType[*unavailableError](err); !ok {
			return nil, err
		}
		missing.Tried = append(missing.Tried, src.name+": "+err.Error())
	}
	return nil, missing
}

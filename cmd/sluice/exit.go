package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/migrations"
)

// The exit codes of every command.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// runError is a failure of a command's work, as opposed to its usage.
type runError struct{ err error }

func (e *runError) Error() string { return e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// usageError is a command line that cannot be meant.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// errSilent is a failure that the command has already told, in its own output.
var errSilent = errors.New("failed")

// report prints what went wrong, one clear line that says what to do next, and
// returns the exit code.
func report(stderr io.Writer, cmd *cobra.Command, err error) int {
	ran, _ := errors.AsType[*runError](err)
	_, usage := errors.AsType[*usageError](err)
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errSilent):
		return exitFailed
	case ran != nil && !usage:
		fmt.Fprintf(stderr, "sluice: %s\n", inWords(ran.err))
		return exitFailed
	default:
		fmt.Fprintf(stderr, "sluice: %s (see %s --help)\n", err, cmd.CommandPath())
		return exitUsage
	}
}

// inWords is an error in the operator's words. Causes that could carry a password
// (a connection string, a driver's own message) are never printed.
func inWords(err error) string {
	if text, ok := databaseInWords(err); ok {
		return text
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok && strings.Contains(err.Error(), "\n") {
		// errors.Join: what failed, and what failed while cleaning up after it.
		var texts []string
		for _, one := range several.Unwrap() {
			texts = append(texts, inWords(one))
		}
		return strings.Join(texts, "; ")
	}
	if large, ok := errors.AsType[*eventstore.TooLargeError](err); ok {
		return fmt.Sprintf("%d events are too many to be written at once, nothing was written: apply a part of the file first, then the whole", large.Events)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.Is(err, eventstore.ErrOverloaded):
		return "the log is overloaded, nothing was written: try again"
	case errors.Is(err, eventstore.ErrOutcomeUnknown):
		return "the connection was lost while writing, so the change may or may not be in the log: run the command again"
	}
	return err.Error()
}

func databaseInWords(err error) (string, bool) {
	if behind, ok := errors.AsType[*migrations.BehindError](err); ok {
		if behind.Version == 0 {
			return "the database is empty: run `sluice migrate`", true
		}
		return behind.Error(), true
	}
	if _, ok := errors.AsType[*migrations.DigestError](err); ok {
		return err.Error() + ": run the sluice that migrated it, or `sluice migrate` on a database of its own", true
	}
	database, _ := errors.AsType[*databaseError](err)
	switch {
	case errors.Is(err, migrations.ErrForeignSchema):
		return "the database holds another application's tables: give Sluice a database of its own (createdb sluice), then run `sluice migrate`", true
	case errors.Is(err, migrations.ErrNoDatabase) && database != nil:
		return fmt.Sprintf("the database %q does not exist: create it (createdb %s), then run `sluice migrate`", database.name, database.name), true
	case errors.Is(err, migrations.ErrUnreachable) && database != nil:
		return fmt.Sprintf("the database at %s cannot be reached (%s): start it, or correct %s", database.host, reason(err), database.source), true
	case errors.Is(err, eventstore.ErrUnavailable):
		return "the database went away, nothing was written: try again when it is back", true
	}
	return "", false
}

// reason is the innermost cause that holds no secret: what the network or the
// server said.
func reason(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "28P01", "28000":
			return "user or password refused"
		case "53300":
			return "it has no connection left"
		case "57P03":
			return "it is starting up or shutting down"
		}
		return "SQLSTATE " + pg.Code
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer"
	}
	return "no connection"
}

// databaseError says which database an error is about, without its credentials.
type databaseError struct {
	source, host, name string
	err                error
}

func (e *databaseError) Error() string { return e.err.Error() }
func (e *databaseError) Unwrap() error { return e.err }

// aboutDatabase names the database that an error is about.
func aboutDatabase(source, address string, err error) error {
	if err == nil {
		return nil
	}
	about := &databaseError{source: source, host: "the given address", name: "?", err: err}
	if u, parseErr := url.Parse(address); parseErr == nil {
		if about.host = u.Host; about.host == "" {
			about.host = u.Query().Get("host")
		}
		about.name = strings.TrimPrefix(u.Path, "/")
	}
	return about
}

// listenError says which address could not be listened on and how to choose
// another.
type listenError struct {
	address, setting string
	err              error
}

func (e *listenError) Unwrap() error { return e.err }

func (e *listenError) Error() string {
	switch {
	case errors.Is(e.err, syscall.EADDRINUSE):
		return fmt.Sprintf("%s is taken: stop what listens there, or choose another address with %s", e.address, e.setting)
	case errors.Is(e.err, syscall.EACCES):
		return fmt.Sprintf("%s may not be used by this user: choose another address with %s", e.address, e.setting)
	}
	return fmt.Sprintf("cannot listen on %s (%s): correct %s", e.address, reason(e.err), e.setting)
}

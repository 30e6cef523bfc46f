package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// startTimeout bounds the wait for a server that was started, crash
	// recovery of a developer's database included.
	startTimeout = 60 * time.Second

	// readyPoll is how often a starting server is asked whether it is ready.
	readyPoll = 10 * time.Millisecond

	// immediateWait is how long a server that ignored a fast shutdown may take
	// for an immediate one before it is killed.
	immediateWait = 2 * time.Second

	superuser = "postgres"
	socket    = ".s.PGSQL.5432" // the port is only a file name: no TCP is opened
)

// cluster is a private PostgreSQL run from programs on this machine.
type cluster struct {
	programs programs
	place    place
	durable  bool
	process  *process // nil or dead: not running
}

// openLocal runs a private cluster from installed programs.
func openLocal(ctx context.Context, opts Options) (*Server, error) {
	installed := installedPrograms(ctx)
	if len(installed) == 0 {
		return nil, unavailable("no server programs of PostgreSQL %d or newer on PATH, at pg_config --bindir or in the usual places", MinMajorVersion)
	}
	return openCluster(ctx, opts, installed)
}

// openCluster starts a cluster with the first of the installed programs that
// fits the data directory.
func openCluster(ctx context.Context, opts Options, installed []programs) (_ *Server, err error) {
	where, err := newPlace(opts.DataDir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, where.close())
		}
	}()
	chosen, err := programsFor(where.data, installed)
	if err != nil {
		return nil, err
	}
	c := &cluster{programs: chosen, place: where, durable: opts.Durable}
	if err := c.initialize(ctx); err != nil {
		return nil, err
	}
	if err := stopOrphan(ctx, where.data); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return &Server{backend: c, choice: c.describe()}, nil
}

func (c *cluster) describe() string {
	text := fmt.Sprintf("private PostgreSQL %d from %s, data in %s", c.programs.major, c.programs.dir, c.place.data)
	if c.place.account != nil {
		text += ", as account " + c.place.account.name
	}
	if c.place.note != "" {
		text += " (" + c.place.note + ")"
	}
	return text
}

func (c *cluster) url() *url.URL {
	query := url.Values{"host": {filepath.Dir(c.place.socket)}, "port": {"5432"}}
	return &url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/postgres", RawQuery: query.Encode()}
}

// initialize makes the data directory if there is none. initdb works beside it
// and the finished directory is renamed into place, so that an interrupted
// first run leaves nothing that looks like data.
func (c *cluster) initialize(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(c.place.data, "PG_VERSION")); err == nil {
		return nil
	}
	half := c.place.data + ".new"
	if err := os.RemoveAll(half); err != nil {
		return fmt.Errorf("cannot clear an unfinished PostgreSQL data directory: %w", err)
	}
	if err := c.place.mkdirOwned(half); err != nil {
		return err
	}
	args := []string{
		"--pgdata=" + half, "--username=" + superuser,
		"--auth=trust",                   // the socket's directory is closed to others
		"--encoding=UTF8", "--no-locale", // the same order of texts on every machine
		"--no-instructions",
	}
	if !c.durable {
		args = append(args, "--no-sync")
	}
	p, err := startProcess(c.command(syscall.SIGKILL, "initdb", args...))
	if err != nil {
		return fmt.Errorf("cannot run initdb: %w", err)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.signal(syscall.SIGKILL)
		<-p.done
		return ctx.Err()
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("initdb failed: %s", p.log.String())
	}
	if err := os.Rename(half, c.place.data); err != nil {
		return fmt.Errorf("cannot move the new PostgreSQL data into place: %w", err)
	}
	return nil
}

// command prepares a server program to run in the data directory's parent: the
// caller's own directory may be closed to the account.
func (c *cluster) command(parentDied syscall.Signal, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(c.programs.path(program), args...)
	cmd.Dir = c.place.base
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=" + os.Getenv("PATH")} // no PG* variable of the caller's
	cmd.SysProcAttr = childAttributes(c.place.account, parentDied)
	return cmd
}

// settings are the server's, as -c options so that a kept cluster follows a new
// version of this list.
func (c *cluster) settings() []string {
	list := []string{
		"listen_addresses=",
		"port=5432",
		"unix_socket_directories=" + filepath.Dir(c.place.socket),
		"unix_socket_permissions=0700",
		"timezone=UTC",
		"log_timezone=UTC",
		// The log must not repeat what people asked: no statements, no DETAIL
		// lines with the values of a violated key.
		"log_min_error_statement=panic",
		"log_error_verbosity=terse",
		"log_checkpoints=off",
		"max_connections=100",
	}
	if c.durable {
		return append(list, "shared_buffers=64MB", "max_wal_size=512MB")
	}
	// Many test packages run at once, one cluster each.
	return append(list, "shared_buffers=32MB", "max_wal_size=256MB",
		"fsync=off", "full_page_writes=off")
}

func (c *cluster) start(ctx context.Context) error {
	if c.process != nil && c.process.alive() {
		return nil
	}
	if err := clearStalePIDFile(c.place.data); err != nil {
		return err
	}
	args := []string{"-D", c.place.data}
	for _, setting := range c.settings() {
		args = append(args, "-c", setting)
	}
	// When we are killed: data to keep is closed in good order, a throwaway
	// cluster ends at once.
	parentDied := syscall.SIGINT
	if c.place.temporary {
		parentDied = syscall.SIGQUIT
	}
	p, err := startProcess(c.command(parentDied, "postgres", args...))
	if err != nil {
		return fmt.Errorf("cannot run postgres: %w", err)
	}
	c.process = p
	if err := c.awaitReady(ctx); err != nil {
		return errors.Join(err, c.kill())
	}
	return nil
}

// awaitReady returns when the server answers a query, or says why it will not.
func (c *cluster) awaitReady(ctx context.Context) error {
	err := awaitAnswer(ctx, c.url().String(), c.process.done)
	if err != nil {
		return fmt.Errorf("%w; its log: %s", err, c.process.log.String())
	}
	return nil
}

// awaitAnswer asks the server until it answers, ended is closed (nil: never), or
// startTimeout is over. Asking is the only sign of readiness that holds for every
// version and every way to run the server.
func awaitAnswer(ctx context.Context, address string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for {
		select {
		case <-ended:
			return errors.New("PostgreSQL did not start")
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL was not ready in time: %w", ctx.Err())
		case <-poll.C:
			if answers(ctx, address) {
				return nil
			}
		}
	}
}

func answers(ctx context.Context, address string) bool {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return false // no socket yet, or "the database system is starting up"
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return conn.Ping(ctx) == nil
}

// stop asks for a fast shutdown: sessions are cut, a checkpoint is written. When
// ctx is done first, harder signals follow.
func (c *cluster) stop(ctx context.Context) error {
	if c.process == nil || !c.process.alive() {
		return nil
	}
	c.process.signal(syscall.SIGINT)
	select {
	case <-c.process.done:
		return nil
	case <-ctx.Done():
	}
	c.process.signal(syscall.SIGQUIT)
	late := time.NewTimer(immediateWait)
	defer late.Stop()
	select {
	case <-c.process.done:
		return nil // what was committed is in the log and comes back at the next start
	case <-late.C:
		return c.kill()
	}
}

func (c *cluster) kill() error {
	if c.process != nil {
		c.process.signal(syscall.SIGKILL)
		<-c.process.done
	}
	return nil
}

func (c *cluster) close() error { return c.place.close() }

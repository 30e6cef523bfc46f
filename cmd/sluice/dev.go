package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/eventstore/pgserver"
	"github.com/sluice-gateway/sluice/migrations"
)

// databaseStart bounds finding and starting a PostgreSQL; the slowest way there is
// a download of its programs.
const databaseStart = 5 * time.Minute

func newDev() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine, with nothing to set up",
		Long: "Starts a private PostgreSQL (or uses DATABASE_URL), migrates it, configures a fake\n" +
			"provider and a demo organization, runs a worker and prints a request to try.\n" +
			"Data and key stay in the data directory; a second start goes on where the first\n" +
			"ended. A default port that is taken is replaced by a free one.",
		Example: "  sluice dev\n" +
			"  sluice dev --data-dir /tmp/demo --listen 127.0.0.1:9000",
		Args: cobra.NoArgs,
	}
	listen := addListenFlags(cmd)
	dir := cmd.Flags().String("data-dir", "", "where data and keys are kept (default $SLUICE_DATA_DIR or "+defaultDataDir+")")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		public, admin := listen.resolve(true)
		d, err := openDevDir(cmp.Or(*dir, dataDir()))
		if err != nil {
			return err
		}
		return runDev(ctx, cmd, d, public, admin)
	})
	return cmd
}

// runDev brings everything up in order and takes it down in the opposite one.
func runDev(ctx context.Context, cmd *cobra.Command, dir devDir, public, admin address) (err error) {
	logger := newLogger(cmd.ErrOrStderr(), slog.LevelWarn)
	secrets, err := prepareSecrets(dir)
	if err != nil {
		return err
	}
	server, err := startDatabase(ctx, cmd, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopDatabase(server, dir)) }()
	db := database{url: server.URL(""), source: "the private PostgreSQL in " + string(dir)}
	if os.Getenv("DATABASE_URL") != "" {
		db.source = "DATABASE_URL"
	}
	if _, err := migrations.Migrate(ctx, db.url, false); err != nil {
		return db.about(err)
	}
	if err := dir.write(databaseFile, db.url); err != nil {
		return err
	}

	fake, listener, err := listenFake(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fake.Close()) }()
	key, err := configureDemo(ctx, db, dir, "http://"+listener.Addr().String())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	w, err := openWorker(ctx, workerConfig{db: db, public: public, admin: admin, logger: logger, provider: listener.Addr().String()})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, w.close()) }()

	hello := greeting{
		database: server.Description(), fake: listener.Addr().String(), dir: string(dir), key: key, adminKey: secrets.admin,
		public: w.publicListener.Addr().String(), admin: w.adminListener.Addr().String(),
		asked: [2]string{public.value, admin.value},
	}
	out := cmd.OutOrStdout()
	lines, err := newFollower(ctx, w.store, out, hello.trailOf)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return serveDev(ctx, w, fake, listener, lines, func() { hello.print(out) })
}

// serveDev runs the worker beside what only dev has. The fake provider goes on
// while the worker drains, so that running answers can end.
func serveDev(ctx context.Context, w *worker, fake *fakeprovider.Server, listener net.Listener, lines *follower, ready func()) error {
	pieces, ctx := errgroup.WithContext(ctx)
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	pieces.Go(func() error { return fake.Serve(listener) })
	pieces.Go(func() error { return lines.run(beside) })
	pieces.Go(func() error {
		defer stop()
		err := w.run(ctx, ready)
		return errors.Join(err, fake.Close())
	})
	return pieces.Wait()
}

// devSecrets are the keys that dev makes for itself.
type devSecrets struct{ master, admin string }

// prepareSecrets makes on the first start what the environment would hold in
// production, and puts it there.
func prepareSecrets(dir devDir) (s devSecrets, err error) {
	if s.master, err = dir.masterKey(); err != nil {
		return s, err
	}
	if s.admin, err = dir.adminKey(); err != nil {
		return s, err
	}
	for name, value := range map[string]*string{"SLUICE_MASTER_KEY": &s.master, "SLUICE_ADMIN_KEY": &s.admin} {
		if set := os.Getenv(name); set != "" {
			*value = set // the developer's own
			continue
		}
		if err := os.Setenv(name, *value); err != nil {
			return s, err
		}
	}
	return s, setDemoCredentials()
}

func startDatabase(ctx context.Context, cmd *cobra.Command, dir devDir) (*pgserver.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, databaseStart)
	defer cancel()
	if isTerminal(cmd.ErrOrStderr()) {
		fmt.Fprintln(cmd.ErrOrStderr(), "starting PostgreSQL ...")
	}
	return pgserver.Find(ctx, pgserver.Options{
		AddressEnv: []string{"DATABASE_URL"}, DataDir: dir.path("postgres"), Durable: true,
	})
}

func stopDatabase(server *pgserver.Server, dir devDir) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return errors.Join(dir.remove(databaseFile), server.Stop(ctx))
}

// listenFake starts the fake provider where it was the last time, so that the
// configuration in the log stays true; somewhere else if that port is taken now.
func listenFake(dir devDir) (*fakeprovider.Server, net.Listener, error) {
	fake, err := fakeprovider.New(fakeprovider.Options{})
	if err != nil {
		return nil, nil, err
	}
	last, err := dir.read(fakeProviderFile)
	if err != nil {
		return nil, nil, err
	}
	listener, err := listen(address{value: cmp.Or(last, "127.0.0.1:0"), free: true})
	if err != nil {
		return nil, nil, err
	}
	return fake, listener, dir.write(fakeProviderFile, listener.Addr().String())
}

// configureDemo applies the demo and returns the key to try it with.
func configureDemo(ctx context.Context, db database, dir devDir, fakeURL string) (key string, err error) {
	log, err := db.openLog(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, closeStore(log)) }()
	if err := applyDemo(ctx, log, fakeURL); err != nil {
		return "", err
	}
	return demoKey(ctx, log, dir)
}

// greeting is what dev prints once everything runs.
type greeting struct {
	database, fake, dir string
	key, adminKey       string
	public, admin       string
	// asked are the addresses that were wanted; a free port may have replaced them.
	asked [2]string
}

func (g greeting) print(w io.Writer) {
	p := newPaint(w)
	line := func(name, value string) { fmt.Fprintf(w, "  %-14s %s\n", name, value) }
	fmt.Fprintln(w, p.bold("sluice dev is ready"))
	line("gateway", baseURL(g.public)+g.instead(g.public, g.asked[0]))
	line("admin", baseURL(g.admin)+g.instead(g.admin, g.asked[1])+"  (/admin/v1 /livez /readyz /startupz /metrics)")
	line("fake provider", "http://"+g.fake+"  (scripted faults: sluice fakeprovider --help)")
	line("database", g.database)
	line("admin key", g.adminKey)
	if g.key == "" {
		fmt.Fprintf(w, "\nThe configuration is your own: tenant %s is not in it, so there is no demo request to show.\n", demoTenant)
		return
	}
	fmt.Fprintf(w, "\nTry it:\n\n%s\n", demoCurl(baseURL(g.public), g.key))
	fmt.Fprintf(w, "\nThen look at what happened, over HTTP or with the id that is shown here:\n\n%s\n%s\n\n",
		apiCurl(baseURL(g.public), g.key, "/v1/requests?limit=1"), g.trailCommand("ID"))
	fmt.Fprintf(w, "Other models: quill-2 works at once; any fault is a model away (sluice export, then edit and sluice apply).\n\n")
}

// instead says that a default port was taken.
func (greeting) instead(got, asked string) string {
	_, gotPort, _ := net.SplitHostPort(got)
	if _, port, _ := net.SplitHostPort(asked); port == gotPort || port == "0" {
		return ""
	}
	return "  (" + asked + " is taken)"
}

func (g greeting) trailOf(id string) string {
	return apiCurl(baseURL(g.public), g.key, "/v1/requests/"+id+"/trail")
}

// trailCommand is this same program, told where the data is if it could not know.
func (g greeting) trailCommand(id string) string {
	command := os.Args[0] + " trail " + id
	if g.dir != dataDir() {
		command = "SLUICE_DATA_DIR=" + g.dir + " " + command
	}
	return command
}

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

func newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a worker on DATABASE_URL",
		Long: "Runs one worker. Any number of them may serve one database, behind any balancer.\n" +
			"It migrates nothing and refuses a schema that it does not know.\n\n" +
			"SIGTERM and SIGINT end it well: not ready at once, running answers end within 60 s,\n" +
			"everything settled is written. A second signal ends it at once.",
		Example: "  DATABASE_URL=postgres://localhost/sluice sluice serve\n" +
			"  DATABASE_URL=postgres://localhost/sluice sluice serve --listen :9000 --admin-listen 127.0.0.1:9001",
		Args: cobra.NoArgs,
	}
	listen := addListenFlags(cmd)
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		db, err := databaseFromEnv()
		if err != nil {
			return err
		}
		public, admin := listen.resolve(false)
		w, err := openWorker(ctx, workerConfig{db: db, public: public, admin: admin, logger: newLogger(cmd.ErrOrStderr(), slog.LevelInfo)})
		if err != nil {
			return err
		}
		return errors.Join(w.run(ctx, nil), w.close())
	})
	return cmd
}

// newLogger writes lines for people to a terminal and JSON to everything else.
func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/adapters/reconciler"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/checks"
)

const (
	reconcileEveryEnv  = "SLUICE_RECONCILE_EVERY"
	reconcileBudgetEnv = "SLUICE_RECONCILE_BUDGET"
	// reconcilerConns is what a run needs: one connection has the lead, one the lock of a
	// table's verification, one works and one reads along. They are its own, so that it
	// takes none from searches and read models.
	reconcilerConns = 4
)

func newReconcile() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare what is kept beside the log with the log",
		Long: "Reads the log again and compares the budget counters, the read models, the sums of\n" +
			"money and the open holds with it, within a time budget. Each check says passed, drift\n" +
			"or timed_out; one that timed out has not passed. Exit code 1 says that not all passed.\n" +
			"Traffic goes on meanwhile, and one reconciliation runs at a time. Workers make one a\n" +
			"day by themselves.\n\n" +
			"Checks: " + checkNames(),
		Example: "  sluice reconcile\n" +
			"  sluice reconcile --checks counters,money --time-budget 30m --output json",
		Args: cobra.NoArgs,
	}
	output := addOutput(cmd)
	names := cmd.Flags().StringSlice("checks", nil, "which checks, separated by commas; all without")
	budget := cmd.Flags().Duration("time-budget", reconciliation.DefaultTimeBudget, "how long all of them may take together")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		wanted := make([]reconciliation.Check, len(*names))
		for i, name := range *names {
			wanted[i] = reconciliation.Check(name)
		}
		// Refused before a database is looked for.
		if _, err := reconciliation.Begin(wanted, *budget); err != nil {
			return usagef("%s", err)
		}
		report, err := reconcile(ctx, newProgress(cmd), wanted, *budget)
		switch {
		case errors.Is(err, reconciler.ErrRunning):
			return errors.New("a reconciliation is running; one runs at a time, on all workers together")
		case err != nil:
			return err
		case *output == outputJSON:
			err = printJSON(cmd.OutOrStdout(), report)
		default:
			printReconciled(cmd.OutOrStdout(), report)
		}
		if err == nil && (report.Result == nil || *report.Result != reconciliation.Passed) {
			return errSilent
		}
		return err
	})
	return cmd
}

func checkNames() string {
	var names []string
	for _, c := range reconciliation.Checks() {
		names = append(names, string(c))
	}
	return strings.Join(names, ", ")
}

// reconcile makes one run in this process.
func reconcile(ctx context.Context, shown *progress, wanted []reconciliation.Check, budget time.Duration) (report reconciler.Report, err error) {
	db, err := findDatabase()
	if err != nil {
		return report, err
	}
	err = withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
		pool, err := db.openPool(ctx, reconcilerConns)
		if err != nil {
			return err
		}
		defer pool.Close()
		defer shown.done()
		config := reconcilerOn(pool, log)
		made := checks.New(pool, log)
		config.Look = func(ctx context.Context, check reconciliation.Check, progress func(done, total int64)) (reconciliation.Finding, error) {
			return made.Look(ctx, check, func(done, total int64) {
				shown.show("checking %s: %d of %d events", check, done, total)
				progress(done, total)
			})
		}
		r := reconciler.New(config)
		id, err := r.Once(ctx, wanted, budget, byOperator())
		if err != nil {
			return err
		}
		// Also for a run that was interrupted: what it found is there.
		report, err = r.Get(context.WithoutCancel(ctx), id)
		return err
	})
	return report, err
}

// reconcilerOn is what commands and workers make a reconciler of.
func reconcilerOn(pool *pgxpool.Pool, log *eventstore.Store) reconciler.Config {
	return reconciler.Config{
		Log: log, Leads: reconciler.Database{Pool: pool}, Look: checks.New(pool, log).Look,
		Now: time.Now, NewID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) },
		// What fails is told by the report; a command's stderr is not a log.
		Logger: slog.New(slog.DiscardHandler),
	}
}

// reconcileSettings reads how often a worker reconciles by itself, and for how long.
func reconcileSettings(getenv func(string) string) (every, budget time.Duration, err error) {
	every, budget = reconciler.DefaultEvery, 0
	if text := getenv(reconcileEveryEnv); text != "" {
		every, err = time.ParseDuration(text)
		if err != nil || every < 0 || (every > 0 && every < reconciler.MinEvery) {
			return 0, 0, fmt.Errorf("%s=%q must be 0 or a duration of at least %s, such as 24h", reconcileEveryEnv, text, reconciler.MinEvery)
		}
	}
	if text := getenv(reconcileBudgetEnv); text != "" {
		budget, err = time.ParseDuration(text)
		if err != nil || budget < reconciliation.MinTimeBudget || budget > reconciliation.MaxTimeBudget {
			return 0, 0, fmt.Errorf("%s=%q must be a duration between %s and %s", reconcileBudgetEnv, text,
				reconciliation.MinTimeBudget, reconciliation.MaxTimeBudget)
		}
	}
	return every, budget, nil
}

func printReconciled(w io.Writer, r reconciler.Report) {
	p := newPaint(w)
	for _, c := range r.Checks {
		word, about := p.red("none     "), "not made: "+string(c.Undone)
		if c.Result != nil {
			paint := p.red
			if *c.Result == reconciliation.Passed {
				paint = p.green
			}
			word = paint(fmt.Sprintf("%-9s", *c.Result))
			about = fmt.Sprintf("%d compared at position %d in %d ms", c.Compared, c.Position, c.DurationMS)
			if c.Open > 0 {
				about += fmt.Sprintf(", %d attempts are open and hold %d nano-USD", c.Open, c.OpenHeld)
			}
			if c.Drifted > 0 {
				about += fmt.Sprintf(", %d differ", c.Drifted)
			}
		}
		fmt.Fprintf(w, "%s  %-11s  %s\n", word, c.Check, about)
		if c.Finding == nil {
			continue
		}
		for _, d := range c.Drifts {
			amounts := ""
			if d.Log != nil && d.Live != nil {
				amounts = fmt.Sprintf(", %d in the log, %d there", *d.Log, *d.Live)
			}
			fmt.Fprintf(w, "             %s: %s%s\n", d.Key, d.Is, amounts)
		}
	}
	if r.Result != nil && *r.Result == reconciliation.Differs {
		fmt.Fprintln(w, "run `sluice rebuild` for what differs, and find out why it did")
	}
}

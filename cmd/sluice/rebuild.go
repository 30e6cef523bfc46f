package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/bills"
	"github.com/sluice-gateway/sluice/projections/views"
)

// keeperConns is what a rebuild or verification needs: one connection holds its
// lock, one works, one reads along.
const keeperConns = 4

// rebuilt is the JSON of `sluice rebuild`; a dry run has bills.Difference.
type rebuilt struct {
	Projection string `json:"projection"`
	// Events is how much of the log it was made from.
	Events int64 `json:"events"`
}

func newRebuild() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rebuild PROJECTION",
		Short: "Make a read model again from the log",
		Long: "Makes a read model again beside the live one, while traffic goes on, and switches in\n" +
			"one transaction. An interrupted rebuild goes on where it stopped. With --dry-run,\n" +
			"says what the bills of every organization would change by.\n\n" +
			"Projections: " + strings.Join(views.Names(), ", "),
		Example: "  sluice rebuild bills --dry-run --output json\n  sluice rebuild requests",
		Args:    cobra.ExactArgs(1),
	}
	output := addOutput(cmd)
	dryRun := cmd.Flags().Bool("dry-run", false, "bills only: say what would change and change nothing")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		name := args[0]
		if *dryRun && name != (bills.Projection{}).Name() {
			return usagef("--dry-run is for bills; `sluice verify` compares every read model with the log")
		}
		shown := newProgress(cmd)
		result := rebuilt{Projection: name}
		var difference bills.Difference
		err := withKeeper(ctx, func(ctx context.Context, _ *eventstore.Store, k *views.Keeper) (err error) {
			defer shown.done()
			show := func(at projections.Progress) {
				result.Events = at.Done
				shown.show("rebuilding %s: %d of %d events", at.Projection, at.Done, at.Total)
			}
			if *dryRun {
				difference, err = k.DryRunBills(ctx, show)
				return err
			}
			return k.Rebuild(ctx, name, show)
		})
		if unknown, ok := errors.AsType[*views.UnknownError](err); ok {
			return usagef("%s", unknown)
		}
		switch {
		case err != nil:
			return err
		case *dryRun:
			return printDifference(cmd, *output, difference)
		case *output == outputJSON:
			return printJSON(cmd.OutOrStdout(), result)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "rebuilt %s from %d events\n", result.Projection, result.Events)
		return err
	})
	return cmd
}

func printDifference(cmd *cobra.Command, output outputFormat, d bills.Difference) error {
	w := cmd.OutOrStdout()
	if output == outputJSON {
		return printJSON(w, d)
	}
	fmt.Fprintf(w, "bills from %d events; nothing was changed (--dry-run)\n", d.Events)
	for _, t := range d.Tenants {
		fmt.Fprintf(w, "  %-20s charged %d nano-USD, would be %d (%+d)\n", t.Tenant, t.Before, t.After, t.Difference)
	}
	return nil
}

// withKeeper runs work that reads the log and writes read models.
func withKeeper(ctx context.Context, work func(context.Context, *eventstore.Store, *views.Keeper) error) error {
	db, err := findDatabase()
	if err != nil {
		return err
	}
	return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
		pool, err := db.openPool(ctx, keeperConns)
		if err != nil {
			return err
		}
		defer pool.Close()
		return work(ctx, log, views.NewKeeper(pool, log))
	})
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/eventstore"
	why "github.com/sluice-gateway/sluice/projections/explain"
)

// maxCircuitEvents bounds what is read of one circuit's history. Transitions are
// minutes apart.
const maxCircuitEvents = 100_000

func newExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Say in sentences why a request went where it went",
		Long: "Reads the request's events from the log, and those of the circuits that kept a route\n" +
			"shut, and says why each move was made from what was recorded when it was made.",
		Example: "  sluice explain 019b3c1e-7c1a-7d58-9f3e-0a4c1c1f5b77",
		Args:    cobra.ExactArgs(1),
	}
	output := addOutput(cmd)
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		return withRequest(ctx, args[0], func(ctx context.Context, log *eventstore.Store, events []eventstore.Recorded) error {
			lines, err := why.Request(events, circuitHistory(ctx, log))
			if err != nil {
				return err
			}
			if *output == outputJSON {
				return printJSON(cmd.OutOrStdout(), lines)
			}
			for _, l := range lines {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s  %s\n", l.At.Format("15:04:05.000"), l.Text); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return cmd
}

// circuitHistory tells what the log knows of a circuit at a past moment (H11). A
// history that cannot be read leaves its sentence shorter.
func circuitHistory(ctx context.Context, log *eventstore.Store) why.Circuits {
	return func(stream string, at time.Time) string {
		history, err := log.ReadStream(ctx, stream, 1, maxCircuitEvents)
		if err != nil {
			return ""
		}
		return why.Circuit(history, at)
	}
}

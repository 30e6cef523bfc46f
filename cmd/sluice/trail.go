package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/trail"
)

func newTrail() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trail ID",
		Short: "Draw everything that happened to one request",
		Long: "Reads the request's events from the log and draws them as a waterfall. Nothing is\n" +
			"masked: whoever can read the database is the operator.",
		Example: "  sluice trail 019b3c1e-7c1a-7d58-9f3e-0a4c1c1f5b77\n" +
			"  sluice trail 019b3c1e-7c1a-7d58-9f3e-0a4c1c1f5b77 --output json | jq .entries",
		Args: cobra.ExactArgs(1),
	}
	output := addOutput(cmd)
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		return withRequest(ctx, args[0], func(_ context.Context, _ *eventstore.Store, events []eventstore.Recorded) error {
			t, err := trail.Build(events, trail.Operator)
			if err != nil {
				return err
			}
			if *output == outputJSON {
				return printJSON(cmd.OutOrStdout(), t)
			}
			w := cmd.OutOrStdout()
			_, err = io.WriteString(w, trail.Render(t, terminalWidth(w), bool(newPaint(w))))
			return err
		})
	})
	return cmd
}

// withRequest reads one request's events from the log, by the id that its reply
// carried.
func withRequest(ctx context.Context, arg string, work func(context.Context, *eventstore.Store, []eventstore.Recorded) error) error {
	id, err := uuid.Parse(strings.TrimPrefix(arg, "request/"))
	if err != nil {
		return usagef("%q is no request id: it is the x-request-id of the reply", arg)
	}
	return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
		events, err := log.ReadStream(ctx, "request/"+id.String(), 1, maxRequestEvents)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return fmt.Errorf("there is no request %s in the log", id)
		}
		return work(ctx, log, events)
	})
}

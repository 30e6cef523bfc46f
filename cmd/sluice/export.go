package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

func newExport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the configuration as a sluice.yaml",
		Long: "Writes the configuration to standard output in a stable order; applying it changes\n" +
			"nothing. It holds no secrets: credentials stand in it as names of variables.",
		Example: "  sluice export > sluice.yaml",
		Args:    cobra.NoArgs,
	}
	output := addOutput(cmd)
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
			state, err := live.Read(ctx, log)
			if err != nil {
				return err
			}
			if *output == outputJSON {
				return printJSON(cmd.OutOrStdout(), state.Objects())
			}
			_, err = cmd.OutOrStdout().Write(config.Export(state))
			return err
		})
	})
	return cmd
}

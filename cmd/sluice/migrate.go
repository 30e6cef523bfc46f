package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/migrations"
)

// migrated is the JSON of `sluice migrate`.
type migrated struct {
	DryRun  bool  `json:"dry_run"`
	Version int64 `json:"schema_version"`
	// Applied are the migrations that were applied, or would be, in order.
	Applied []migrationJSON `json:"migrations"`
}

type migrationJSON struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
}

func newMigrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema to this build's version",
		Long: "Applies the pending migrations to DATABASE_URL. Running workers go on serving:\n" +
			"a migration only adds. Several may run at once; the second finds nothing to do.",
		Example: "  DATABASE_URL=postgres://localhost/sluice sluice migrate --dry-run\n" +
			"  DATABASE_URL=postgres://localhost/sluice sluice migrate",
		Args: cobra.NoArgs,
	}
	output := addOutput(cmd)
	dryRun := cmd.Flags().Bool("dry-run", false, "say what would be applied and apply nothing")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		db, err := findDatabase()
		if err != nil {
			return err
		}
		list, err := migrations.Migrate(ctx, db.url, *dryRun)
		if err != nil {
			return db.about(err)
		}
		result := migrated{DryRun: *dryRun, Version: migrations.Latest(), Applied: make([]migrationJSON, len(list))}
		for i, m := range list {
			result.Applied[i] = migrationJSON{m.Version, m.Name}
		}
		if *output == outputJSON {
			return printJSON(cmd.OutOrStdout(), result)
		}
		printMigrated(cmd, result)
		return nil
	})
	return cmd
}

func printMigrated(cmd *cobra.Command, m migrated) {
	w := cmd.OutOrStdout()
	verb := "applied"
	if m.DryRun {
		verb = "would apply"
	}
	for _, one := range m.Applied {
		fmt.Fprintf(w, "%s %s\n", verb, one.Name)
	}
	if len(m.Applied) == 0 {
		fmt.Fprintf(w, "nothing to apply: the schema is at version %d\n", m.Version)
	}
}

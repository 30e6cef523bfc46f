package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/webhooks"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

// applied is the JSON of `sluice apply`.
type applied struct {
	DryRun   bool         `json:"dry_run"`
	Created  int          `json:"created"`
	Changed  int          `json:"changed"`
	Removed  int          `json:"removed"`
	Changes  []changeJSON `json:"changes"`
	Warnings []string     `json:"warnings"`
}

type changeJSON struct {
	Action string `json:"action"`
	Kind   string `json:"kind"`
	ID     string `json:"id"`
}

func newApply() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make the configuration what a file says",
		Long: "Shows what changes and writes it as events, all or nothing. The file is the whole\n" +
			"configuration: what it does not hold is removed, callers' keys excepted. Running\n" +
			"workers pick the change up by themselves. A bad file is refused whole.",
		Example: "  sluice apply -f sluice.yaml --dry-run\n" +
			"  sluice apply -f sluice.yaml\n" +
			"  sluice export | sed s/64/128/ | sluice apply -f -",
		Args: cobra.NoArgs,
	}
	output := addOutput(cmd)
	path := cmd.Flags().StringP("file", "f", "", "the file to apply, - for standard input")
	dryRun := cmd.Flags().Bool("dry-run", false, "show what would change and change nothing")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if *path == "" {
			return usagef("name the file: -f FILE")
		}
		// Read before the database is asked: a broken file is refused without one.
		db, _ := findDatabase() // withLog says what is wrong with it
		guard, err := guardHere(db)
		if err != nil {
			return err
		}
		file, err := loadConfig(cmd.InOrStdin(), *path, config.Loader{
			Refuses: guard.Refuses, RefusesWebhook: func(url string) bool { return webhooks.Refuses(url, guard.Opened) },
		})
		if err != nil {
			return err
		}
		return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
			state, err := live.Read(ctx, log)
			if err != nil {
				return err
			}
			file.Warnings = append(file.Warnings, file.Doubts(state)...)
			plan := config.Diff(state, file.Objects)
			if !*dryRun {
				if err := config.Apply(ctx, log, plan, byOperator(), time.Now()); err != nil {
					return err
				}
			}
			return printApplied(cmd, *output, *dryRun, plan, file.Warnings)
		})
	})
	return cmd
}

// loadConfig reads a configuration file, or standard input for "-".
func loadConfig(stdin io.Reader, path string, loader config.Loader) (*config.File, error) {
	if path == "-" {
		return loader.Load(stdin, "standard input")
	}
	f, err := os.Open(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist: name a sluice.yaml with -f", path)
	case err != nil:
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return loader.Load(f, path)
}

func printApplied(cmd *cobra.Command, output outputFormat, dryRun bool, plan config.Plan, warnings []config.Warning) error {
	if output == outputJSON {
		result := applied{DryRun: dryRun, Changes: changesJSON(plan.Changes), Warnings: make([]string, len(warnings))}
		result.Created, result.Changed, result.Removed = plan.Counts()
		for i, w := range warnings {
			result.Warnings[i] = w.String()
		}
		return printJSON(cmd.OutOrStdout(), result)
	}
	for _, w := range warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", w)
	}
	if err := plan.Print(cmd.OutOrStdout()); err != nil {
		return err
	}
	if dryRun && !plan.Empty() {
		fmt.Fprintln(cmd.OutOrStdout(), "nothing was applied (--dry-run)")
	}
	return nil
}

func changesJSON(changes []catalog.ObjectChange) []changeJSON {
	list := make([]changeJSON, len(changes))
	for i, c := range changes {
		list[i] = changeJSON{Action: string(c.Action), Kind: string(c.Kind), ID: c.ID}
	}
	return list
}

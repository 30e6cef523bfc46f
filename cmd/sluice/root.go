package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "A gateway in front of LLM providers that writes everything down",
		Long: "Sluice takes a request, decides which routes may serve it, calls them one after\n" +
			"the other, and writes what happened as events in PostgreSQL.",
		Example: "  sluice dev                      # everything on this machine, nothing to set up\n" +
			"  sluice migrate && sluice serve  # a worker on DATABASE_URL",
		// Errors and usage are printed by report, in one form for all commands.
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	group(root)
	root.SetHelpCommand(&cobra.Command{
		Use:     "help [command]",
		Short:   "Explain a command",
		Example: "  sluice help serve",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, _, err := root.Find(args)
			if err != nil || about == root && len(args) > 0 {
				return unknownCommand(root, args)
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	})
	root.AddCommand(
		newServe(), newDev(), newMigrate(),
		newApply(), newExport(), newHistory(), newRevert(), newKeys(), newCredentials(),
		newPrices(), newBills(), newEquivalence(),
		newRebuild(), newVerify(), newReconcile(), newTrail(), newExplain(),
		newFakeProvider(), newDoctor(), newVersion(),
	)
	return root
}

// group makes a command that only holds others answer a missing or misspelt one
// as bad usage; cobra alone would print help and exit 0.
func group(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = func(cmd *cobra.Command, args []string) error { return unknownCommand(cmd, args) }
	cmd.RunE = func(*cobra.Command, []string) error { return nil } // Args has refused every call
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		slices.Sort(names)
		return usagef("name a command: %s", strings.Join(names, ", "))
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usagef("there is no command %q; did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return usagef("there is no command %q", args[0])
}

// running marks the errors of a command's own work. Whatever fails before it (an
// unknown flag, an argument too many, a required flag left out) is bad usage.
func running(work func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := work(cmd.Context(), cmd, args); err != nil {
			return &runError{err}
		}
		return nil
	}
}

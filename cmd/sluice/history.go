package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

const objectHelp = "An object is named as a plan names it: provider/ID, deployment/ID, model/SLUG,\n" +
	"chain/SLUG, class/NAME, tier/NAME, webhook/ID, tenant/ID, alias/TENANT/NAME,\n" +
	"routing_rule/TENANT/MATCH, budget/TENANT/SCOPE/UNIT/PERIOD, connection/TENANT/ID,\n" +
	"tenant_chain/TENANT/MODEL, promotion/TENANT/ID, tenant_webhook/TENANT/ID, key/ID."

// changeOf is one entry of `sluice history` in JSON.
type changeOf struct {
	Revision int64     `json:"revision"`
	At       time.Time `json:"at"`
	Actor    string    `json:"actor"`
	Event    string    `json:"event"`
	// Before and After are null where the object was not there.
	Before any `json:"before"`
	After  any `json:"after"`
	// Evidence names what an equivalence check has stored.
	Evidence string `json:"evidence,omitempty"`
}

func newHistory() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history OBJECT",
		Short: "Tell who changed an object of the configuration, when, and what",
		Long: "Reads the object's events from the log, oldest first: who, when, and the fields that\n" +
			"were and are. " + objectHelp,
		Example: "  sluice history model/fable-5\n" +
			"  sluice history budget/acme/organization/usd/month --output json",
		Args: cobra.ExactArgs(1),
	}
	output := addOutput(cmd)
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		id, err := objectNamed(args[0])
		if err != nil {
			return err
		}
		return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
			entries, err := config.History(ctx, log, id)
			if err != nil {
				return err
			}
			if len(entries) == 0 {
				return fmt.Errorf("there has never been a %s", id)
			}
			if *output == outputJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{"data": changesOf(entries), "next_cursor": nil})
			}
			return printHistory(cmd.OutOrStdout(), entries)
		})
	})
	return cmd
}

func objectNamed(text string) (catalog.ObjectID, error) {
	id, err := catalog.ParseObjectID(text)
	if err != nil {
		return id, usagef("%s", err)
	}
	return id, nil
}

func changesOf(entries []config.Entry) []changeOf {
	list := make([]changeOf, len(entries))
	for i, e := range entries {
		list[i] = changeOf{
			Revision: e.Revision, At: e.At, Actor: e.Actor, Event: e.Type,
			Before: withoutHash(e.Before), After: withoutHash(e.After), Evidence: e.Evidence,
		}
	}
	return list
}

// withoutHash is an object as it may be shown: a key's hash could be tried against
// guesses.
func withoutHash(object any) any {
	if key, ok := object.(catalog.Key); ok {
		key.Hash = ""
		return key
	}
	return object
}

func printHistory(w io.Writer, entries []config.Entry) error {
	p := newPaint(w)
	for _, e := range entries {
		head := fmt.Sprintf("%d  %s  %s  %s", e.Revision, e.At.UTC().Format(time.RFC3339), cmp.Or(e.Actor, "unknown"), e.Type)
		if _, err := fmt.Fprintln(w, p.bold(head)); err != nil {
			return err
		}
		if e.Evidence != "" {
			if _, err := fmt.Fprintf(w, "    evidence %s\n", e.Evidence); err != nil {
				return err
			}
		}
		before, after := config.Lines(withoutHash(e.Before)), config.Lines(withoutHash(e.After))
		for _, line := range before {
			if !slices.Contains(after, line) {
				fmt.Fprintf(w, "    %s\n", p.red("- "+line))
			}
		}
		for _, line := range after {
			if !slices.Contains(before, line) {
				fmt.Fprintf(w, "    %s\n", p.green("+ "+line))
			}
		}
	}
	return nil
}

// reverted is the JSON of `sluice revert`.
type reverted struct {
	Object   string       `json:"object"`
	To       int64        `json:"to"`
	Revision int64        `json:"revision"`
	Changes  []changeJSON `json:"changes"`
}

func newRevert() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revert OBJECT --to REVISION",
		Short: "Make an object again what it was at a revision",
		Long: "Writes a new event that restores the object as `sluice history` shows it at the\n" +
			"revision; nothing is erased. The result is validated as any change: a chain does not\n" +
			"come back to a deployment that is gone. Revisions that were written at once are one\n" +
			"change, and each of them means all. Keys cannot be reverted.\n" + objectHelp,
		Example: "  sluice revert chain/fable-5 --to 3\n  sluice revert alias/acme/summarise --to 1",
		Args:    cobra.ExactArgs(1),
	}
	output := addOutput(cmd)
	to := cmd.Flags().Int64("to", 0, "the revision, as history shows it")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		id, err := objectNamed(args[0])
		if err != nil {
			return err
		}
		if *to < 1 {
			return usagef("name the revision: --to REVISION, as `sluice history %s` shows it", id)
		}
		return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
			worker := live.New(log)
			plan, err := config.Revert(ctx, log, worker, id, *to, nil, byOperator(), time.Now())
			if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
				return fmt.Errorf("%s cannot be what it was at revision %d: %s", id, *to, strings.ReplaceAll(invalid.Error(), "\n", "; "))
			}
			if err != nil {
				return err
			}
			result := reverted{Object: id.String(), To: *to, Changes: changesJSON(plan.Changes)}
			err = worker.Read(ctx, func(s *catalog.State) error { result.Revision = s.Revision(id.Stream()); return nil })
			if err != nil {
				return err
			}
			if *output == outputJSON {
				return printJSON(cmd.OutOrStdout(), result)
			}
			return plan.Print(cmd.OutOrStdout())
		})
	})
	return cmd
}

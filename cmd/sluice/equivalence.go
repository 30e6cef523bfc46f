package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/dialect/registry"
	"github.com/sluice-gateway/sluice/adapters/poolcheck"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/adapters/tokens"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/equivalence"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

func newEquivalence() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "equivalence",
		Short:   "Compare the deployments of a model, and certify that they are one",
		Example: "  sluice equivalence check fable-5 --max-usd 0.25",
	}
	group(cmd)
	cmd.AddCommand(newEquivalenceCheck(), newEquivalenceList(), newEquivalenceCertify())
	return cmd
}

// The most that one check may be allowed: a ceiling with a zero too many is no ceiling.
const (
	mostUSD      = 1000
	mostAttempts = 2000
)

func newEquivalenceCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check MODEL",
		Short: "Ask every deployment of a model the same, compare the answers, store what was found",
		Long: "Sends six small synthetic requests to each deployment that the model's chain names,\n" +
			"with the operator's keys, and compares how the answers are built: kinds of output, tool\n" +
			"calls and their arguments, structured output, stop reasons, token counts. What they say\n" +
			"is not compared and not kept. Nothing starts a check but this command, nothing of a\n" +
			"customer's is sent, and no organization is charged.\n\n" +
			"Before each call its worst case is added to what was spent: a call that could pass\n" +
			"--max-usd is not made. Keys in the environment, and SLUICE_INTERNAL_HOSTS, are read from\n" +
			"that of this command.\n" +
			"Exit 0 is passed; everything else, what could not be tested included, is 1.",
		Example: "  sluice equivalence check fable-5 --dry-run\n" +
			"  sluice equivalence check fable-5 --max-usd 0.25 --max-attempts 12\n" +
			"  sluice equivalence check fable-5 --with fable-5@bedrock   # before it joins the chain",
		Args: cobra.ExactArgs(1),
	}
	output := addOutput(cmd)
	with := cmd.Flags().StringSlice("with", nil, "also ask these deployments, which are to join the chain")
	maxUSD := cmd.Flags().String("max-usd", poolcheck.DefaultMaxSpend.USD().String(), "the most that the calls may cost together")
	maxAttempts := cmd.Flags().Int("max-attempts", poolcheck.DefaultMaxAttempts, "the most calls")
	dryRun := cmd.Flags().Bool("dry-run", false, "show what would be asked and what it can cost, and call nobody")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		limits, err := checkLimits(*maxUSD, *maxAttempts)
		if err != nil {
			return err
		}
		return withVault(ctx, func(ctx context.Context, log *eventstore.Store, vault *secrets.Vault) error {
			return checkPool(ctx, cmd, *output, log, vault, checkRequest{args[0], *with, limits, *dryRun})
		})
	})
	return cmd
}

func checkLimits(maxUSD string, maxAttempts int) (poolcheck.Limits, error) {
	usd, err := decimal.NewFromString(maxUSD)
	if err != nil || !usd.IsPositive() || usd.GreaterThan(decimal.NewFromInt(mostUSD)) {
		return poolcheck.Limits{}, usagef("--max-usd %q is not an amount above 0 and up to %d", maxUSD, mostUSD)
	}
	spend, err := money.FromUSD(usd)
	if err != nil {
		return poolcheck.Limits{}, usagef("--max-usd %q has more than nine decimal places", maxUSD)
	}
	if maxAttempts < 1 || maxAttempts > mostAttempts {
		return poolcheck.Limits{}, usagef("--max-attempts must be between 1 and %d", mostAttempts)
	}
	return poolcheck.Limits{MaxSpend: spend, MaxAttempts: maxAttempts}, nil
}

// checkRequest is what a check was asked for.
type checkRequest struct {
	model  string
	with   []string
	limits poolcheck.Limits
	dryRun bool
}

// checked is the JSON of `sluice equivalence check`.
type checked struct {
	// Hash is what a certification cites; empty when nothing was stored.
	Hash     string               `json:"hash,omitempty"`
	DryRun   bool                 `json:"dry_run"`
	Evidence equivalence.Evidence `json:"evidence"`
}

func checkPool(ctx context.Context, cmd *cobra.Command, output outputFormat, log *eventstore.Store, vault *secrets.Vault, want checkRequest) error {
	worker := live.New(log)
	var pool poolcheck.Pool
	err := worker.Read(ctx, func(state *catalog.State) (err error) {
		pool, err = poolcheck.PoolOf(state.Objects(), want.model, want.with)
		return err
	})
	if err != nil {
		return err
	}
	db, err := findDatabase()
	if err != nil {
		return err
	}
	guard, err := guardHere(db)
	if err != nil {
		return err
	}
	calls := provider.New(provider.Config{Outbound: registry.Outbound(), InternalHosts: guard.Opened})
	defer calls.Close()
	shown := newProgress(cmd)
	checker := &poolcheck.Checker{
		Providers: calls, Secrets: secrets.NewSource(vault, worker.Current, time.Now), Estimator: tokens.NewEstimator(), Now: time.Now,
		OnCall: func(deployment, name string) { shown.show("asking %s: %s", deployment, name) },
	}
	result := checked{DryRun: want.dryRun}
	if want.dryRun {
		result.Evidence, err = checker.Plan(ctx, pool, want.limits)
	} else {
		result.Evidence, err = checker.Check(ctx, pool, want.limits)
	}
	shown.done()
	if err != nil {
		return err
	}
	// A check that called nobody has found nothing.
	if result.Evidence.Attempts > 0 {
		// It was paid for: an interruption from here on does not lose it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout)
		defer cancel()
		if result.Hash, err = config.StoreEvidence(ctx, log, result.Evidence, byOperator(), time.Now()); err != nil {
			return err
		}
	}
	if output == outputJSON {
		err = printJSON(cmd.OutOrStdout(), result)
	} else {
		err = printChecked(cmd.OutOrStdout(), result)
	}
	if err == nil && !want.dryRun && result.Evidence.Result != equivalence.Passed {
		return errSilent
	}
	return err
}

func newEquivalenceList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list MODEL",
		Short:   "List the checks of a model and the evidence that they stored",
		Example: "  sluice equivalence list fable-5\n  sluice equivalence list fable-5 --output json",
		Args:    cobra.ExactArgs(1),
	}
	output := addOutput(cmd)
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
			list, err := config.EquivalenceChecks(ctx, log, args[0])
			if err != nil {
				return err
			}
			if *output == outputJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{"data": list, "next_cursor": nil})
			}
			return printChecks(cmd.OutOrStdout(), list)
		})
	})
	return cmd
}

// certified is the JSON of `sluice equivalence certify`.
type certified struct {
	Model       string              `json:"model"`
	Equivalence catalog.Equivalence `json:"equivalence"`
	// Doubts were accepted.
	Doubts  []string     `json:"doubts"`
	Changes []changeJSON `json:"changes"`
}

func newEquivalenceCertify() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certify MODEL --by NAME --evidence HASH",
		Short: "Say that the deployments of a model are one model, on the evidence of a check",
		Long: "Writes what `equivalence` says in sluice.yaml, dated today. The evidence must be of a\n" +
			"check of this installation that passed and asked every deployment of the chain as it is\n" +
			"now; --accept-doubts certifies all the same, on the word of who is named. A file that is\n" +
			"applied later has to say the same, as `sluice export` does.",
		Example: "  sluice equivalence certify fable-5 --by ada --evidence sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
		Args:    cobra.ExactArgs(1),
	}
	output := addOutput(cmd)
	var c config.Certification
	cmd.Flags().StringVar(&c.By, "by", "", "who says so")
	cmd.Flags().StringVar(&c.Evidence, "evidence", "", "the hash that the check printed")
	cmd.Flags().BoolVar(&c.AcceptDoubts, "accept-doubts", false, "certify although the evidence does not show it")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		c.Model, c.By = args[0], strings.TrimSpace(c.By)
		switch {
		case c.By == "":
			return usagef("say who certifies: --by NAME")
		case !strings.HasPrefix(c.Evidence, equivalence.HashPrefix):
			return usagef("name the evidence of a check: --evidence sha256:...; evidence of another kind goes into sluice.yaml")
		}
		return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
			now := time.Now()
			plan, doubts, err := config.Certify(ctx, log, live.New(log), c, byOperator(), now)
			if doubted, ok := errors.AsType[*config.DoubtError](err); ok {
				return fmt.Errorf("%w (--accept-doubts certifies it all the same)", doubted)
			}
			if err != nil {
				return err
			}
			for _, doubt := range doubts {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", doubt)
			}
			if *output == outputJSON {
				return printJSON(cmd.OutOrStdout(), certified{
					Model: c.Model, Doubts: append([]string{}, doubts...), Changes: changesJSON(plan.Changes),
					Equivalence: catalog.Equivalence{CertifiedBy: c.By, On: now.UTC().Format(time.DateOnly), Evidence: c.Evidence},
				})
			}
			return plan.Print(cmd.OutOrStdout())
		})
	})
	return cmd
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/eventstore"
)

func newPrices() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "prices",
		Short:   "Correct prices that were wrong in the past",
		Example: "  sluice prices correct --help",
	}
	group(cmd)
	cmd.AddCommand(newPricesCorrect())
	return cmd
}

// rateFlags are the rates that a correction may name, with where they go.
func rateFlags(p *money.Prices, long *money.LongContext) []struct {
	name, help string
	to         **decimal.Decimal
} {
	return []struct {
		name, help string
		to         **decimal.Decimal
	}{
		{"input", "input", &p.Input},
		{"output", "output", &p.Output},
		{"cache-read", "cached input", &p.CacheRead},
		{"cache-write-5m", "input written to a cache for 5 minutes", &p.CacheWrite5m},
		{"cache-write-1h", "input written to a cache for an hour", &p.CacheWrite1h},
		{"audio-input", "audio in the input", &p.AudioInput},
		{"image-input", "images in the input", &p.ImageInput},
		{"audio-output", "audio in the output", &p.AudioOutput},
		{"image-output", "images in the output", &p.ImageOutput},
		{"long-input", "input of long contexts", &long.Input},
		{"long-output", "output of long contexts", &long.Output},
		{"long-cache-read", "cached input of long contexts", &long.CacheRead},
	}
}

// newPricesCorrect has no choice of how it prints: it says one sentence, and --output is
// a price here.
func newPricesCorrect() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "correct DEPLOYMENT",
		Short: "Say what a deployment's prices truly were",
		Long: "Writes the rates that were right for what was settled on a deployment from one time\n" +
			"to another. Name every rate: one that is left out is unknown, and cached input then\n" +
			"costs what input does. Nothing is changed by it but the log: look at\n" +
			"`sluice rebuild bills --dry-run`, and then run `sluice rebuild bills`. Prices from now\n" +
			"on are set with `sluice apply`.",
		Example: "  sluice prices correct fable-5@anthropic --from 2026-11-01 --to 2026-11-15T12:00:00Z \\\n" +
			"    --input 2.50 --output 12.50 --cache-read 0.25 --reason \"the new price list holds from November on\"",
		Args: cobra.ExactArgs(1),
	}
	var c catalog.PriceCorrected
	var long money.LongContext
	rates := rateFlags(&c.Prices, &long)
	written := make([]*string, len(rates))
	for i, r := range rates {
		written[i] = cmd.Flags().String(r.name, "", "USD per million tokens of "+r.help)
	}
	cmd.Flags().Int64Var(&long.AboveInputTokens, "long-above", 0, "input tokens above which a context is long")
	from := cmd.Flags().String("from", "", "since when the rates held: 2026-11-01, or 2026-11-01T12:00:00Z")
	to := cmd.Flags().String("to", "", "until when, and not later than now")
	cmd.Flags().StringVar(&c.Reason, "reason", "", "why; it stands on bills that are adjusted")
	cmd.Flags().StringVar(&c.Prices.Source, "source", "", "where the rates were read, and when")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, args []string) (err error) {
		c.Deployment = args[0]
		if c.From, err = parseMoment("--from", *from); err != nil {
			return err
		}
		if c.To, err = parseMoment("--to", *to); err != nil {
			return err
		}
		for i, r := range rates {
			if err := parseRate("--"+r.name, *written[i], r.to); err != nil {
				return err
			}
		}
		if long != (money.LongContext{}) {
			c.Prices.LongContext = &long
		}
		return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
			if _, err := config.CorrectPrice(ctx, log, c, byOperator(), time.Now()); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(),
				"the prices of %s are corrected in the log; see `sluice rebuild bills --dry-run` for what that changes\n", c.Deployment)
			return err
		})
	})
	return cmd
}

func parseMoment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, usagef("name the interval: %s TIME", flag)
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usagef("%s %q is not a time like 2026-11-01 or 2026-11-01T12:00:00Z", flag, text)
}

func parseRate(flag, text string, to **decimal.Decimal) error {
	if text == "" {
		return nil
	}
	rate, err := decimal.NewFromString(text)
	if err != nil {
		return usagef("%s %q is not a price", flag, text)
	}
	*to = &rate
	return nil
}

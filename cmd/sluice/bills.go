package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/adapters/billing"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/bills"
)

func newBills() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bills",
		Short:   "Close bills whose month is over",
		Example: "  sluice bills close --period 2026-11",
	}
	group(cmd)
	cmd.AddCommand(newBillsClose())
	return cmd
}

// closedBill is one row of the JSON of `sluice bills close`.
type closedBill struct {
	Tenant string `json:"tenant"`
	Period string `json:"period"`
	request.Amounts
	UnknownAttempts int64 `json:"unknown_attempts"`
	Lines           int   `json:"lines"`
	Adjustments     int   `json:"adjustments"`
}

func newBillsClose() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "close --period MONTH",
		Short: "Close the bills of a month that is over, for good",
		Long: "A closed bill never changes: what is settled late, or corrected afterwards, stands on\n" +
			"the next one as an adjustment. Bills of one organization are closed in order. Closing\n" +
			"what is closed already changes nothing.",
		Example: "  sluice bills close --period 2026-11\n" +
			"  sluice bills close --period 2026-11 --tenant acme --output json",
		Args: cobra.NoArgs,
	}
	output := addOutput(cmd)
	period := cmd.Flags().String("period", "", "the month, 2026-11 (UTC)")
	tenant := cmd.Flags().String("tenant", "", "only this organization's bill")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if *period == "" {
			return usagef("name the month: --period 2026-11")
		}
		return withLedger(ctx, func(ctx context.Context, log *eventstore.Store, pool *pgxpool.Pool) error {
			closer := billing.Closer{Log: log, Pool: pool, By: byOperator()}
			closed, err := closeBills(ctx, closer, *tenant, *period)
			if errors.Is(err, bills.ErrPeriod) {
				return usagef("--period %q is not a month like 2026-11", *period)
			}
			if printed := printClosed(cmd, *output, *period, closed); err == nil {
				return printed
			}
			return err
		})
	})
	return cmd
}

// closeBills closes the bills of a month, of one organization or of all that have one.
// One that cannot be closed does not keep the others from it.
func closeBills(ctx context.Context, closer billing.Closer, tenant, period string) ([]closedBill, error) {
	if err := closer.CaughtUp(ctx); err != nil {
		return nil, err
	}
	tenants := []string{tenant}
	if tenant == "" {
		var err error
		if tenants, err = bills.Billed(ctx, closer.Pool, period); err != nil {
			return nil, err
		}
	}
	now := time.Now()
	closed := []closedBill{}
	var failed []error
	for _, t := range tenants {
		c, err := closer.Close(ctx, t, period, now)
		if _, early := errors.AsType[*bills.NotEndedError](err); early {
			return closed, err // for all of them
		}
		switch {
		case errors.Is(err, bills.ErrClosed):
		case errors.Is(err, bills.ErrNotFound):
			failed = append(failed, fmt.Errorf("%s has no bill for %s", t, period))
		case err != nil:
			failed = append(failed, err)
		default:
			closed = append(closed, closedBill{
				Tenant: t, Period: period, Amounts: c.Bill.Amounts, UnknownAttempts: c.Bill.UnknownAttempts,
				Lines: len(c.Bill.Lines), Adjustments: len(c.Bill.Adjustments),
			})
		}
	}
	return closed, errors.Join(failed...)
}

func printClosed(cmd *cobra.Command, output outputFormat, period string, closed []closedBill) error {
	w := cmd.OutOrStdout()
	if output == outputJSON {
		return printJSON(w, map[string]any{"data": closed, "next_cursor": nil})
	}
	for _, b := range closed {
		fmt.Fprintf(w, "closed %s of %s: charged %d nano-USD in %d lines and %d adjustments, %d attempts unknown\n",
			b.Period, b.Tenant, b.Charge, b.Lines, b.Adjustments, b.UnknownAttempts)
	}
	_, err := fmt.Fprintf(w, "%d bills of %s were closed\n", len(closed), period)
	return err
}

// withLedger runs work that reads bills and writes to the log.
func withLedger(ctx context.Context, work func(context.Context, *eventstore.Store, *pgxpool.Pool) error) error {
	db, err := findDatabase()
	if err != nil {
		return err
	}
	return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
		pool, err := db.openPool(ctx, 2)
		if err != nil {
			return err
		}
		defer pool.Close()
		return work(ctx, log, pool)
	})
}

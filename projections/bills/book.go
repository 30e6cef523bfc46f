package bills

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/billing"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/projections"
)

// configShard holds the deployments, and so the corrections of their prices.
const configShard int16 = 0

const (
	configPage = 5000
	// maxCorrections bounds what a batch may have to be priced with. A correction is
	// written by a person; ten thousand are no ledger that anybody could follow.
	maxCorrections = 10_000
)

// Newest implements projections.Foreseeing.
func (Projection) Newest(ctx context.Context, log projections.Log) (int64, error) {
	all, err := Corrections(ctx, log, math.MaxInt64)
	if len(all) == 0 {
		return 0, err
	}
	return all[len(all)-1].Position, err
}

// Foresee implements projections.Foreseeing: the corrections of the log become the
// view's.
func (Projection) Foresee(ctx context.Context, tx pgx.Tx, log projections.Log, upTo int64) error {
	all, err := Corrections(ctx, log, upTo)
	if err != nil {
		return err
	}
	for _, c := range all {
		rates, err := json.Marshal(c.Prices)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			insert into bill_corrections (position, deployment, from_at, to_at, rates, reason) values ($1, $2, $3, $4, $5, $6)`,
			c.Position, c.Deployment, c.From, c.To, rates, c.Reason)
		if err != nil {
			return fmt.Errorf("take in price corrections: %w", err)
		}
	}
	return nil
}

// Foreseen implements projections.Foreseeing.
func (Projection) Foreseen(ctx context.Context, tx pgx.Tx) (upTo int64, err error) {
	err = tx.QueryRow(ctx, `select coalesce(max(position), 0) from bill_corrections`).Scan(&upTo)
	return upTo, err
}

var _ projections.Foreseeing = Projection{}

// Corrections reads the price corrections of the log up to a position, in order.
func Corrections(ctx context.Context, log projections.Log, upTo int64) ([]billing.Correction, error) {
	var all []billing.Correction
	for after := int64(0); ; {
		page, err := log.ReadConfig(ctx, configShard, after, configPage)
		if err != nil || len(page) == 0 {
			return all, err
		}
		for _, rec := range page {
			after = rec.Position
			if rec.Position > upTo {
				return all, nil
			}
			if rec.Type != "price_corrected" {
				continue
			}
			e, err := projections.Decode(rec)
			if err != nil {
				return nil, err
			}
			c, ok := e.(catalog.PriceCorrected)
			if !ok || len(all) == maxCorrections {
				return nil, projections.At(rec, errTooManyCorrections)
			}
			all = append(all, billing.Correction{Position: rec.Position, PriceCorrected: c})
		}
	}
}

// book is what a batch of settlements is entered by.
type book struct {
	// corrections of a deployment's prices, in the order of the log.
	corrections map[string][]billing.Correction
	// closed is the newest closed bill of an organization. Bills are closed in order:
	// the earlier ones are closed too.
	closed map[string]string
}

// openBook reads what the view holds about the deployments and organizations of a batch.
func openBook(ctx context.Context, tx pgx.Tx, settled []Entry) (book, error) {
	b := book{corrections: map[string][]billing.Correction{}, closed: map[string]string{}}
	deployments, tenants := map[string]bool{}, map[string]bool{}
	for _, e := range settled {
		deployments[e.Deployment], tenants[e.Tenant] = true, true
	}
	rows, err := tx.Query(ctx, `
		select position, deployment, from_at, to_at, rates from bill_corrections where deployment = any($1) order by position`,
		slices.Collect(maps.Keys(deployments)))
	if err != nil {
		return b, err
	}
	var c billing.Correction
	var rates []byte
	_, err = pgx.ForEachRow(rows, []any{&c.Position, &c.Deployment, &c.From, &c.To, &rates}, func() error {
		found := c
		b.corrections[c.Deployment] = append(b.corrections[c.Deployment], found)
		list := b.corrections[c.Deployment]
		return json.Unmarshal(rates, &list[len(list)-1].Prices)
	})
	if err != nil {
		return b, err
	}
	rows, err = tx.Query(ctx, `select tenant, max(period) from bill_closings where tenant = any($1) group by tenant`,
		slices.Collect(maps.Keys(tenants)))
	if err != nil {
		return b, err
	}
	var tenant, period string
	_, err = pgx.ForEachRow(rows, []any{&tenant, &period}, func() error {
		b.closed[tenant] = period
		return nil
	})
	return b, err
}

// entries are what a settlement is entered as: itself, and what corrections changed.
func (b book) entries(settled Entry) []Entry {
	if closed := b.closed[settled.Tenant]; settled.Bill <= closed {
		settled.Bill, settled.Reason = billing.Next(closed), lateSettlement
	}
	list := b.corrections[settled.Deployment]
	if len(list) == 0 {
		return []Entry{settled}
	}
	var entries []Entry
	for _, e := range billing.Entries(settled.AttemptSettled, settled.At, list) {
		entry := settled
		entry.Correction, entry.Amounts = e.Correction, e.Amounts
		if e.Correction != 0 {
			entry.Usage = noUsage // it was counted with the settlement
		}
		entries = append(entries, entry)
	}
	return entries
}

package bills

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/projections"
)

// Difference is what a rebuild would change, before it changes anything (M15).
type Difference struct {
	Projection string `json:"projection"`
	// Events is how many events of the log the bills are made from.
	Events  int64              `json:"events"`
	Tenants []TenantDifference `json:"tenants"`
}

// TenantDifference is one organization's charges over all periods.
type TenantDifference struct {
	Tenant     string `json:"tenant"`
	Before     int64  `json:"before_nanousd"`
	After      int64  `json:"after_nanousd"`
	Difference int64  `json:"difference_nanousd"`
}

// DryRun makes the bills again beside the live ones, with every price correction that
// there is, and says how each organization's charges would differ. All organizations are listed, also those
// that would not notice. progress may be nil.
func DryRun(ctx context.Context, r *projections.Rebuilder, progress func(projections.Progress)) (Difference, error) {
	var before, after map[string]int64
	events, err := r.Beside(ctx, Projection{}, progress,
		func(ctx context.Context, tx pgx.Tx) (err error) { before, err = charges(ctx, tx); return err },
		func(ctx context.Context, tx pgx.Tx) (err error) { after, err = charges(ctx, tx); return err })
	if err != nil {
		return Difference{}, err
	}
	d := Difference{Projection: Projection{}.Name(), Events: events, Tenants: []TenantDifference{}}
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, tenant := range slices.Sorted(maps.Keys(all)) {
		d.Tenants = append(d.Tenants, TenantDifference{
			Tenant: tenant, Before: before[tenant], After: after[tenant], Difference: after[tenant] - before[tenant],
		})
	}
	return d, nil
}

// charges sums what each organization is charged.
func charges(ctx context.Context, tx pgx.Tx) (map[string]int64, error) {
	rows, err := tx.Query(ctx, `select tenant, sum(charge_nanousd)::bigint from bill_lines group by tenant`)
	if err != nil {
		return nil, err
	}
	sums := map[string]int64{}
	var tenant string
	var charge int64
	_, err = pgx.ForEachRow(rows, []any{&tenant, &charge}, func() error {
		sums[tenant] = charge
		return nil
	})
	return sums, err
}

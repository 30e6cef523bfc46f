package bills

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

// errStray is a settlement outside a request's stream.
var errStray = errors.New("bills: a settlement of no request")

// Projection keeps the tables ledger_attempts and bill_lines.
type Projection struct{}

// Name implements projections.Projection.
func (Projection) Name() string { return "bills" }

// Version implements projections.Projection.
func (Projection) Version() int { return 1 }

// Types implements projections.Projection.
func (Projection) Types() []string { return []string{"attempt_settled"} }

// Money implements projections.Projection: a bill stops at what it cannot read.
func (Projection) Money() bool { return true }

// sqlEnter writes a batch into the ledger and adds what was new there to the lines,
// in one statement: whatever is read twice adds nothing (I5).
const sqlEnter = `
with entered as (
	insert into ledger_attempts (request_id, attempt, tenant, period, line, at, key,
		provider, model, deployment, credential_owner, fallback_kind, basis,
		input_tokens, cached_input_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
		list_nanousd, charge_nanousd, provider_cost_nanousd, subsidy_nanousd, surcharge_nanousd, masked)
	select * from unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::text[],
		$8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[],
		$14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[],
		$20::bigint[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[], $25::boolean[])
	on conflict do nothing
	returning *)
insert into bill_lines as line (tenant, period, line, model, deployment, credential_owner, fallback_kind, masked,
	attempts, unknown_attempts, input_tokens, cached_input_tokens, output_tokens,
	list_nanousd, charge_nanousd, provider_cost_nanousd, subsidy_nanousd, surcharge_nanousd)
select tenant, period, line, min(model), min(deployment), min(credential_owner), min(fallback_kind), bool_or(masked),
	count(*), count(*) filter (where basis = 'unknown'),
	coalesce(sum(input_tokens), 0)::bigint, coalesce(sum(cached_input_tokens), 0)::bigint, coalesce(sum(output_tokens), 0)::bigint,
	sum(list_nanousd)::bigint, sum(charge_nanousd)::bigint, sum(provider_cost_nanousd)::bigint,
	sum(subsidy_nanousd)::bigint, sum(surcharge_nanousd)::bigint
from entered
group by tenant, period, line
order by tenant, period, line
on conflict (tenant, period, line) do update set
	masked = line.masked or excluded.masked,
	attempts = line.attempts + excluded.attempts,
	unknown_attempts = line.unknown_attempts + excluded.unknown_attempts,
	input_tokens = line.input_tokens + excluded.input_tokens,
	cached_input_tokens = line.cached_input_tokens + excluded.cached_input_tokens,
	output_tokens = line.output_tokens + excluded.output_tokens,
	list_nanousd = line.list_nanousd + excluded.list_nanousd,
	charge_nanousd = line.charge_nanousd + excluded.charge_nanousd,
	provider_cost_nanousd = line.provider_cost_nanousd + excluded.provider_cost_nanousd,
	subsidy_nanousd = line.subsidy_nanousd + excluded.subsidy_nanousd,
	surcharge_nanousd = line.surcharge_nanousd + excluded.surcharge_nanousd`

// Apply implements projections.Projection.
func (Projection) Apply(ctx context.Context, tx pgx.Tx, batch []eventstore.Recorded) error {
	entries := make([]Entry, len(batch))
	for i, rec := range batch {
		var err error
		if entries[i], err = entryOf(rec); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, sqlEnter,
		gather(entries, func(e Entry) [16]byte { return e.RequestID }),
		gather(entries, func(e Entry) int { return e.Attempt }),
		gather(entries, func(e Entry) string { return e.Tenant }),
		gather(entries, Entry.Period),
		gather(entries, Entry.Line),
		gather(entries, func(e Entry) time.Time { return e.At }),
		gather(entries, func(e Entry) string { return e.Key }),
		gather(entries, func(e Entry) string { return e.Provider }),
		gather(entries, func(e Entry) string { return e.Model }),
		gather(entries, func(e Entry) string { return e.Deployment }),
		gather(entries, func(e Entry) string { return string(e.CredentialOwner) }),
		gather(entries, func(e Entry) string { return string(e.FallbackKind) }),
		gather(entries, func(e Entry) string { return string(e.Basis) }),
		gather(entries, func(e Entry) *int64 { return tokens(e.Usage.Input) }),
		gather(entries, func(e Entry) *int64 { return tokens(e.Usage.CachedInput) }),
		gather(entries, func(e Entry) *int64 { return tokens(e.Usage.CacheWrite5m) }),
		gather(entries, func(e Entry) *int64 { return tokens(e.Usage.CacheWrite1h) }),
		gather(entries, func(e Entry) *int64 { return tokens(e.Usage.Output) }),
		gather(entries, func(e Entry) *int64 { return tokens(e.Usage.Reasoning) }),
		gather(entries, func(e Entry) int64 { return int64(e.List) }),
		gather(entries, func(e Entry) int64 { return int64(e.Charge) }),
		gather(entries, func(e Entry) int64 { return int64(e.ProviderCost) }),
		gather(entries, func(e Entry) int64 { return int64(e.Subsidy) }),
		gather(entries, func(e Entry) int64 { return int64(e.Surcharge) }),
		gather(entries, func(e Entry) bool { return e.Masked }),
	)
	return err
}

// gather is one column of the entries, as the array that unnest takes.
func gather[T any](entries []Entry, of func(Entry) T) []T {
	values := make([]T, len(entries))
	for i, e := range entries {
		values[i] = of(e)
	}
	return values
}

func tokens(c usage.Count) *int64 {
	if !c.Known() {
		return nil
	}
	return &c.N
}

var _ projections.Projection = Projection{}

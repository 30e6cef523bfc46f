package bills

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

var (
	// errStray is an event outside the stream that it belongs to.
	errStray = errors.New("bills: a settlement of no request, or a closing of no period")
	// errTooManyCorrections is a log with more of them than a bill is priced with.
	errTooManyCorrections = errors.New("bills: more price corrections than can be taken in")
)

// Projection keeps the ledger and what is summed from it: bill_lines and usage_days.
type Projection struct{}

// Name implements projections.Projection.
func (Projection) Name() string { return "bills" }

// Version implements projections.Projection.
func (Projection) Version() int { return 2 }

const (
	settledType = "attempt_settled"
	closedType  = "bill_closed"
)

// Types implements projections.Projection. Corrections are not among them: the view
// is told of those when it is rebuilt.
func (Projection) Types() []string { return []string{settledType, closedType} }

// Money implements projections.Projection: a bill stops at what it cannot read.
func (Projection) Money() bool { return true }

// lineSums are the sums of a group of entries. A correction is no attempt of its own,
// but where it is all that its line is about.
const lineSums = `
	count(*) filter (where correction = 0 or reason = 'price_correction') as attempts,
	count(*) filter (where correction = 0 and basis = 'unknown') as unknown_attempts,
	coalesce(sum(input_tokens), 0)::bigint as input_tokens,
	coalesce(sum(cached_input_tokens), 0)::bigint as cached_input_tokens,
	coalesce(sum(output_tokens), 0)::bigint as output_tokens,
	sum(list_nanousd)::bigint as list_nanousd, sum(charge_nanousd)::bigint as charge_nanousd,
	sum(provider_cost_nanousd)::bigint as provider_cost_nanousd,
	sum(subsidy_nanousd)::bigint as subsidy_nanousd, sum(surcharge_nanousd)::bigint as surcharge_nanousd`

// sqlAddToLines adds the entries in `entered` to their lines. An adjustment is about
// another bill and names no deployment.
const sqlAddToLines = `
insert into bill_lines as line (tenant, period, line, of_period, reason, correction,
	model, deployment, credential_owner, fallback_kind, masked,
	attempts, unknown_attempts, input_tokens, cached_input_tokens, output_tokens,
	list_nanousd, charge_nanousd, provider_cost_nanousd, subsidy_nanousd, surcharge_nanousd)
select tenant, period, line, min(of_period), min(reason),
	case min(reason) when 'price_correction' then min(correction) else 0 end,
	case min(reason) when '' then min(model) else '' end, case min(reason) when '' then min(deployment) else '' end,
	case min(reason) when '' then min(credential_owner) else '' end,
	case min(reason) when '' then min(fallback_kind) else '' end,
	bool_or(masked and reason = ''), ` + lineSums + `
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

// sqlEnter writes a batch into the ledger and adds what was new there to the sums, in
// one statement: whatever is read twice adds nothing (I5).
const sqlEnter = `
with entered as (
	insert into ledger_attempts (request_id, attempt, correction, position, tenant, period, of_period, reason, line, at, key,
		provider, model, deployment, credential_owner, fallback_kind, basis,
		input_tokens, cached_input_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
		list_nanousd, charge_nanousd, provider_cost_nanousd, subsidy_nanousd, surcharge_nanousd, masked)
	select * from unnest($1::uuid[], $2::int[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[],
		$9::text[], $10::timestamptz[], $11::text[],
		$12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[],
		$18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::bigint[], $23::bigint[],
		$24::bigint[], $25::bigint[], $26::bigint[], $27::bigint[], $28::bigint[], $29::boolean[])
	on conflict do nothing
	returning *),
days as (
	insert into usage_days as d (tenant, day, key, model, attempts, unknown_attempts,
		input_tokens, cached_input_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
		list_nanousd, charge_nanousd, provider_cost_nanousd, subsidy_nanousd, surcharge_nanousd)
	select tenant, (at at time zone 'UTC')::date, key, model,
		count(*) filter (where correction = 0), count(*) filter (where correction = 0 and basis = 'unknown'),
		coalesce(sum(input_tokens), 0), coalesce(sum(cached_input_tokens), 0), coalesce(sum(cache_write_5m_tokens), 0),
		coalesce(sum(cache_write_1h_tokens), 0), coalesce(sum(output_tokens), 0), coalesce(sum(reasoning_tokens), 0),
		sum(list_nanousd), sum(charge_nanousd), sum(provider_cost_nanousd), sum(subsidy_nanousd), sum(surcharge_nanousd)
	from entered
	group by 1, 2, 3, 4
	order by 1, 2, 3, 4
	on conflict (tenant, day, key, model) do update set
		attempts = d.attempts + excluded.attempts,
		unknown_attempts = d.unknown_attempts + excluded.unknown_attempts,
		input_tokens = d.input_tokens + excluded.input_tokens,
		cached_input_tokens = d.cached_input_tokens + excluded.cached_input_tokens,
		cache_write_5m_tokens = d.cache_write_5m_tokens + excluded.cache_write_5m_tokens,
		cache_write_1h_tokens = d.cache_write_1h_tokens + excluded.cache_write_1h_tokens,
		output_tokens = d.output_tokens + excluded.output_tokens,
		reasoning_tokens = d.reasoning_tokens + excluded.reasoning_tokens,
		list_nanousd = d.list_nanousd + excluded.list_nanousd,
		charge_nanousd = d.charge_nanousd + excluded.charge_nanousd,
		provider_cost_nanousd = d.provider_cost_nanousd + excluded.provider_cost_nanousd,
		subsidy_nanousd = d.subsidy_nanousd + excluded.subsidy_nanousd,
		surcharge_nanousd = d.surcharge_nanousd + excluded.surcharge_nanousd)` + sqlAddToLines

// Apply implements projections.Projection.
func (Projection) Apply(ctx context.Context, tx pgx.Tx, batch []eventstore.Recorded) error {
	for len(batch) > 0 {
		// Everything before a closing is entered before it.
		n := slices.IndexFunc(batch, func(rec eventstore.Recorded) bool { return rec.Type == closedType })
		if n == 0 {
			if err := closeBill(ctx, tx, batch[0]); err != nil {
				return err
			}
			batch = batch[1:]
			continue
		}
		if n < 0 {
			n = len(batch)
		}
		if err := enter(ctx, tx, batch[:n]); err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// enter enters settlements.
func enter(ctx context.Context, tx pgx.Tx, batch []eventstore.Recorded) error {
	settled := make([]Entry, len(batch))
	for i, rec := range batch {
		var err error
		if settled[i], err = entryOf(rec); err != nil {
			return err
		}
	}
	b, err := openBook(ctx, tx, settled)
	if err != nil {
		return err
	}
	entries := make([]Entry, 0, len(settled))
	for _, e := range settled {
		entries = append(entries, b.entries(e)...)
	}
	_, err = tx.Exec(ctx, sqlEnter,
		gather(entries, func(e *Entry) [16]byte { return e.RequestID }),
		gather(entries, func(e *Entry) int { return e.Attempt }),
		gather(entries, func(e *Entry) int64 { return e.Correction }),
		gather(entries, func(e *Entry) int64 { return e.Position }),
		gather(entries, func(e *Entry) string { return e.Tenant }),
		gather(entries, func(e *Entry) string { return e.Bill }),
		gather(entries, (*Entry).Month),
		gather(entries, func(e *Entry) string { return e.Reason }),
		gather(entries, (*Entry).Line),
		gather(entries, func(e *Entry) time.Time { return e.At }),
		gather(entries, func(e *Entry) string { return e.Key }),
		gather(entries, func(e *Entry) string { return e.Provider }),
		gather(entries, func(e *Entry) string { return e.Model }),
		gather(entries, func(e *Entry) string { return e.Deployment }),
		gather(entries, func(e *Entry) string { return string(e.CredentialOwner) }),
		gather(entries, func(e *Entry) string { return string(e.FallbackKind) }),
		gather(entries, func(e *Entry) string { return string(e.Basis) }),
		gather(entries, func(e *Entry) *int64 { return tokens(e.Usage.Input) }),
		gather(entries, func(e *Entry) *int64 { return tokens(e.Usage.CachedInput) }),
		gather(entries, func(e *Entry) *int64 { return tokens(e.Usage.CacheWrite5m) }),
		gather(entries, func(e *Entry) *int64 { return tokens(e.Usage.CacheWrite1h) }),
		gather(entries, func(e *Entry) *int64 { return tokens(e.Usage.Output) }),
		gather(entries, func(e *Entry) *int64 { return tokens(e.Usage.Reasoning) }),
		gather(entries, func(e *Entry) int64 { return int64(e.List) }),
		gather(entries, func(e *Entry) int64 { return int64(e.Charge) }),
		gather(entries, func(e *Entry) int64 { return int64(e.ProviderCost) }),
		gather(entries, func(e *Entry) int64 { return int64(e.Subsidy) }),
		gather(entries, func(e *Entry) int64 { return int64(e.Surcharge) }),
		gather(entries, func(e *Entry) bool { return e.Masked }),
	)
	return err
}

// gather is one column of the entries, as the array that unnest takes.
func gather[T any](entries []Entry, of func(*Entry) T) []T {
	values := make([]T, len(entries))
	for i := range entries {
		values[i] = of(&entries[i])
	}
	return values
}

// noUsage is what an entry without tokens of its own has.
var noUsage usage.Usage

func tokens(c usage.Count) *int64 {
	if !c.Known() {
		return nil
	}
	return &c.N
}

var _ projections.Projection = Projection{}

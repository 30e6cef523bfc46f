package requests

import (
	"fmt"
	"strings"
	"time"
)

// column ties one column of the table to one field of a Row, for writing and for
// reading: the two cannot name them in different orders.
type column struct {
	name string
	// cast is the column's PostgreSQL type.
	cast string
	// gather is the column of many rows, as the array that unnest takes.
	gather func([]Row) any
	// scan is where a row's value is read to.
	scan func(*Row) any
}

func field[T any](name, cast string, at func(*Row) *T) column {
	return column{
		name: name, cast: cast,
		gather: func(rows []Row) any {
			values := make([]T, len(rows))
			for i := range rows {
				values[i] = *at(&rows[i])
			}
			return values
		},
		scan: func(r *Row) any { return at(r) },
	}
}

var columns = []column{
	field("id", "uuid", func(r *Row) *[16]byte { return (*[16]byte)(&r.ID) }),
	field("tenant", "text", func(r *Row) *string { return &r.Tenant }),
	field("key", "text", func(r *Row) *string { return &r.Key }),
	field("at", "timestamptz", func(r *Row) *time.Time { return &r.At }),
	field("state", "text", func(r *Row) *string { return (*string)(&r.State) }),
	field("requested_model", "text", func(r *Row) *string { return &r.RequestedModel }),
	field("canonical_model", "text", func(r *Row) *string { return &r.CanonicalModel }),
	field("class", "text", func(r *Row) *string { return &r.Class }),
	field("dialect", "text", func(r *Row) *string { return &r.Dialect }),
	field("stream", "boolean", func(r *Row) *bool { return &r.Stream }),
	field("snapshot", "text", func(r *Row) *string { return &r.Snapshot }),
	field("client_request_id", "text", func(r *Row) *string { return &r.ClientRequestID }),
	field("outcome", "text", func(r *Row) *string { return (*string)(&r.Outcome) }),
	field("code", "text", func(r *Row) *string { return &r.Code }),
	field("attempts", "bigint", func(r *Row) *int64 { return &r.Attempts }),
	field("fallback_depth", "bigint", func(r *Row) *int64 { return &r.FallbackDepth }),
	field("provider", "text", func(r *Row) *string { return &r.Provider }),
	field("masked", "boolean", func(r *Row) *bool { return &r.Masked }),
	field("basis", "text", func(r *Row) *string { return (*string)(&r.Basis) }),
	field("input_tokens", "bigint", func(r *Row) **int64 { return &r.InputTokens }),
	field("cached_input_tokens", "bigint", func(r *Row) **int64 { return &r.CachedInputTokens }),
	field("cache_write_5m_tokens", "bigint", func(r *Row) **int64 { return &r.CacheWrite5mTokens }),
	field("cache_write_1h_tokens", "bigint", func(r *Row) **int64 { return &r.CacheWrite1hTokens }),
	field("output_tokens", "bigint", func(r *Row) **int64 { return &r.OutputTokens }),
	field("reasoning_tokens", "bigint", func(r *Row) **int64 { return &r.ReasoningTokens }),
	field("list_nanousd", "bigint", func(r *Row) *int64 { return (*int64)(&r.List) }),
	field("charge_nanousd", "bigint", func(r *Row) *int64 { return (*int64)(&r.Charge) }),
	field("provider_cost_nanousd", "bigint", func(r *Row) *int64 { return (*int64)(&r.ProviderCost) }),
	field("subsidy_nanousd", "bigint", func(r *Row) *int64 { return (*int64)(&r.Subsidy) }),
	field("surcharge_nanousd", "bigint", func(r *Row) *int64 { return (*int64)(&r.Surcharge) }),
	field("duration_ms", "bigint", func(r *Row) **int64 { return &r.DurationMS }),
	field("ttft_ms", "bigint", func(r *Row) **int64 { return &r.TTFTMS }),
}

// columnList and upsertSQL are made once from the columns.
var columnList, upsertSQL = func() (list, upsert string) {
	var names, params, sets []string
	for i, c := range columns {
		names = append(names, c.name)
		params = append(params, fmt.Sprintf("$%d::%s[]", i+1, c.cast))
		if c.name != "id" {
			sets = append(sets, c.name+" = excluded."+c.name)
		}
	}
	list = strings.Join(names, ", ")
	return list, "insert into requests (" + list + ") select * from unnest(" + strings.Join(params, ", ") +
		") on conflict (id) do update set " + strings.Join(sets, ", ")
}()

// arrays are the rows as upsertSQL's parameters.
func arrays(rows []Row) []any {
	args := make([]any, len(columns))
	for i, c := range columns {
		args[i] = c.gather(rows)
	}
	return args
}

// targets are where one row is scanned to.
func targets(r *Row) []any {
	into := make([]any, len(columns))
	for i, c := range columns {
		into[i] = c.scan(r)
	}
	return into
}

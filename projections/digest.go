package projections

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// maxRowDrifts bounds how many rows a verification names; more of them than this are
// mended by a rebuild, not by hand.
const maxRowDrifts = 100

// RowDrift is a row that is not what the log makes, by its primary key.
type RowDrift struct {
	Table string `json:"table"`
	Key   string `json:"key"`
	// Is is missing (the log makes it), surplus (it does not) or row (another content).
	Is string `json:"is"`
}

// tablesOf are a view's tables, in order.
func tablesOf(ctx context.Context, tx pgx.Tx, name string) ([]string, error) {
	rows, err := tx.Query(ctx, `select table_name from public.projection_tables where name = $1 order by table_name`, name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// digest sums a 64-bit hash of every row: order does not matter, one pass, no sort
// and no string of the size of the table. It finds drift, which is not malice; the
// log's own chain is for that (E9).
func digest(ctx context.Context, tx pgx.Tx, schema string, tables []string) (Digest, error) {
	// A row's text shows times in the session's zone.
	if _, err := tx.Exec(ctx, `set local timezone = 'UTC'`); err != nil {
		return Digest{}, err
	}
	var all Digest
	for _, table := range tables {
		var count int64
		var sum string
		err := tx.QueryRow(ctx, fmt.Sprintf(
			`select count(*), coalesce(sum(hashtextextended(t::text, 0)::numeric), 0)::text from %s t`,
			pgx.Identifier{schema, table}.Sanitize())).Scan(&count, &sum)
		if err != nil {
			return Digest{}, err
		}
		all.Rows += count
		all.Sum += table + ":" + sum + " "
	}
	return all, nil
}

// rowDrifts names the rows that differ between the live tables and a shadow's, the first
// of each table, and counts all.
func rowDrifts(ctx context.Context, tx pgx.Tx, shadow string, tables []string) (total int64, named []RowDrift, err error) {
	for _, table := range tables {
		key, err := primaryKey(ctx, tx, table)
		if err != nil {
			return 0, nil, err
		}
		side := func(schema string) string {
			return fmt.Sprintf(`(select %s as k, hashtextextended(t::text, 0) as h from %s t)`,
				key, pgx.Identifier{schema, table}.Sanitize())
		}
		rows, err := tx.Query(ctx, `
			select $1::text, coalesce(l.k, r.k), case when r.k is null then 'surplus' when l.k is null then 'missing' else 'row' end,
				count(*) over ()
			from `+side("public")+` l full join `+side(shadow)+` r on l.k = r.k
			where l.h is distinct from r.h order by 2 limit $2`, table, maxRowDrifts)
		if err != nil {
			return 0, nil, err
		}
		var d RowDrift
		var count int64
		_, err = pgx.ForEachRow(rows, []any{&d.Table, &d.Key, &d.Is, &count}, func() error {
			named = append(named, d)
			return nil
		})
		if err != nil {
			return 0, nil, err
		}
		total += count
	}
	return total, named[:min(len(named), maxRowDrifts)], nil
}

// primaryKey is a table's primary key as one text, 'a/b/c'.
func primaryKey(ctx context.Context, tx pgx.Tx, table string) (string, error) {
	rows, err := tx.Query(ctx, `
		select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
		where i.indrelid = to_regclass('public.' || quote_ident($1)) and i.indisprimary
		order by array_position(i.indkey::int2[], a.attnum)`, table)
	if err != nil {
		return "", err
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(columns) == 0 {
		err = fmt.Errorf("projections: table %s has no primary key", table)
	}
	if err != nil {
		return "", err
	}
	sql := "concat_ws('/'"
	for _, c := range columns {
		sql += ", t." + pgx.Identifier{c}.Sanitize()
	}
	return sql + ")", nil
}

package eventstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The log is partitioned by month of a request's birth (E7). Months are made ahead
// by the store; taking an old one out, keeping it elsewhere and bringing it back is
// the owner's, over a connection of the migrating user. A detached month is missing
// for readers: ReadAll and rebuilds stop with *GapError until it is back.

// ensurePartitions makes the current month's partition and the next two.
func ensurePartitions(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, `select log_ensure_partitions()`); err != nil {
		return fmt.Errorf("eventstore: partitions: %w", err)
	}
	return nil
}

// keptMonths is how many months before the current one cannot be detached:
// requests live for minutes, but their meter holds and late reports do not.
const keptMonths = 1

// partitionLockTimeout bounds how long appends and readers wait behind a detach that
// waits for them.
const partitionLockTimeout = "2s"

// ErrMonthInUse: the month is too young to be detached.
var ErrMonthInUse = errors.New("eventstore: the month may still be written to")

// PartitionName is the table of the month that holds a day.
func PartitionName(day time.Time) string { return "log_events_" + day.UTC().Format("2006_01") }

// Detach takes a month out of the log: its table stays, under PartitionName, but is
// not read any more. What it held is noted in log_detached for VerifyChain.
func Detach(ctx context.Context, owner *pgx.Conn, month, now time.Time) error {
	if !month.Before(monthOf(now).AddDate(0, -keptMonths, 0)) {
		return ErrMonthInUse
	}
	name := PartitionName(month)
	table := pgx.Identifier{name}.Sanitize()
	return inPartitionTx(ctx, owner, "detach "+name,
		`insert into log_detached (partition, shard, first_position, last_position, row_count)
		 select '`+name+`', shard, min(position - events + 1), max(position), count(*) from `+table+` group by shard`,
		`alter table log_events detach partition `+table)
}

// Attach brings a detached or imported month back. Run VerifyChain afterwards: away
// from the log nothing protects a table.
func Attach(ctx context.Context, owner *pgx.Conn, month time.Time) error {
	name := PartitionName(month)
	lower := monthOf(month)
	bounds := fmt.Sprintf("from ('%s') to ('%s')", lower.Format(time.RFC3339), lower.AddDate(0, 1, 0).Format(time.RFC3339))
	table := pgx.Identifier{name}.Sanitize()
	return inPartitionTx(ctx, owner, "attach "+name,
		`alter table log_events attach partition `+table+` for values `+bounds,
		`drop trigger if exists log_events_no_truncate on `+table,
		`create trigger log_events_no_truncate before truncate on `+table+` for each statement execute function log_refuse_change()`,
		`delete from log_detached where partition = '`+name+`'`)
}

// Export writes a month's table, attached or not, in order, as COPY text with a
// header line.
func Export(ctx context.Context, owner *pgx.Conn, month time.Time, to io.Writer) (rows int64, err error) {
	name := PartitionName(month)
	tag, err := owner.PgConn().CopyTo(ctx, to,
		`copy (select `+rowColumns+` from `+pgx.Identifier{name}.Sanitize()+` order by shard, position) to stdout with (header)`)
	if err != nil {
		return 0, fmt.Errorf("eventstore: export %s: %w", name, err)
	}
	return tag.RowsAffected(), nil
}

// Import makes a month's table from an Export. Attach then brings it back.
func Import(ctx context.Context, owner *pgx.Conn, month time.Time, from io.Reader) (rows int64, err error) {
	name := PartitionName(month)
	table := pgx.Identifier{name}.Sanitize()
	err = inPartitionTx(ctx, owner, "import "+name, `create table `+table+` (like log_events including defaults including constraints)`)
	if err != nil {
		return 0, err
	}
	tag, err := owner.PgConn().CopyFrom(ctx, from, `copy `+table+` (`+rowColumns+`) from stdin with (header match)`)
	if err != nil {
		return 0, fmt.Errorf("eventstore: import %s: %w", name, err)
	}
	return tag.RowsAffected(), nil
}

func inPartitionTx(ctx context.Context, owner *pgx.Conn, what string, statements ...string) error {
	err := pgx.BeginFunc(ctx, owner, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local lock_timeout = '`+partitionLockTimeout+`'`); err != nil {
			return err
		}
		for _, sql := range statements {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("eventstore: %s: %w", what, err)
	}
	return nil
}

func monthOf(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

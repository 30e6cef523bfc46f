package reconciler

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/domain/reconciliation"
)

var (
	// ErrRunning says that a run is under way, here or on another worker.
	ErrRunning = errors.New("reconciler: a reconciliation is running")
	// ErrLeadLost is a run that does not have the lead any more: its connection to the
	// database is gone, or another worker has ended it.
	ErrLeadLost = errors.New("reconciler: the lead of the reconciliation is lost")
)

// Progress is how far a run has come within a check.
type Progress struct {
	Check reconciliation.Check `json:"check"`
	// Done and Total are events of the log; both are zero before the first page.
	Done  int64     `json:"done_events"`
	Total int64     `json:"total_events"`
	At    time.Time `json:"at"`
}

// Leads is what lets one run at a time happen, on all workers together.
type Leads interface {
	// Take takes the lead for a run, or says ErrRunning.
	Take(ctx context.Context, id uuid.UUID) (Lead, error)
	// Leader is the run that has the lead now; uuid.Nil if none has.
	Leader(ctx context.Context) (uuid.UUID, error)
	// Progress is what a run reported last, nil if nothing is known.
	Progress(ctx context.Context, id uuid.UUID) (*Progress, error)
}

// Lead is the right to run, until it is released or its holder is gone.
type Lead interface {
	// Report tells the other workers how far the run has come. ErrLeadLost says that the
	// lead is gone. It does not end with ctx.
	Report(ctx context.Context, p Progress) error
	// Release gives the lead back, also when ctx has ended.
	Release(ctx context.Context)
}

const (
	// leadTimeout bounds a word to the database about the lead.
	leadTimeout = 5 * time.Second
	// leadKey names the lock.
	leadKey = "sluice reconciliation"
)

// Database keeps leads in the database: the lock belongs to a connection, so that it is
// free when its worker is gone, and the progress stands in a table.
type Database struct{ Pool *pgxpool.Pool }

// Take implements Leads. A lead holds one connection of the pool.
func (d Database) Take(ctx context.Context, id uuid.UUID) (Lead, error) {
	conn, err := d.Pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	var mine bool
	err = conn.QueryRow(ctx, `select pg_try_advisory_lock(hashtextextended($1, 0))`, leadKey).Scan(&mine)
	if err != nil || !mine {
		conn.Release()
		if err == nil {
			err = ErrRunning
		}
		return nil, err
	}
	l := &databaseLead{conn: conn, id: id}
	// Old rows are of runs that were interrupted; who wanted to know has looked by now.
	_, err = conn.Exec(ctx, `delete from reconciliation_progress where taken_at < now() - interval '30 days'`)
	if err == nil {
		_, err = conn.Exec(ctx, `insert into reconciliation_progress (id) values ($1)`, id)
	}
	if err != nil {
		l.Release(ctx)
		return nil, err
	}
	return l, nil
}

// sqlLeader finds who took the lock last, if it is held. An advisory lock's 64 bits are
// shown in two halves.
const sqlLeader = `
select p.id from reconciliation_progress p, hashtextextended($1, 0) as k
where exists (select from pg_locks l
	where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
		and l.database = (select oid from pg_database where datname = current_database())
		and l.classid = ((k >> 32) & 4294967295)::oid and l.objid = (k & 4294967295)::oid)
order by p.taken_at desc, p.id desc limit 1`

// Leader implements Leads.
func (d Database) Leader(ctx context.Context) (id uuid.UUID, err error) {
	err = d.Pool.QueryRow(ctx, sqlLeader, leadKey).Scan((*[16]byte)(&id))
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, nil
	}
	return id, err
}

// Progress implements Leads.
func (d Database) Progress(ctx context.Context, id uuid.UUID) (*Progress, error) {
	var p Progress
	err := d.Pool.QueryRow(ctx, `
		select check_name, done, total, at from reconciliation_progress where id = $1 and check_name <> ''`, id).
		Scan(&p.Check, &p.Done, &p.Total, &p.At)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	p.At = p.At.UTC()
	return &p, err
}

type databaseLead struct {
	conn *pgxpool.Conn
	id   uuid.UUID
}

// Report implements Lead. It writes through the connection that has the lock: who lost
// the one has lost the other. A deadline of the caller's would close it.
func (l *databaseLead) Report(ctx context.Context, p Progress) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leadTimeout)
	defer cancel()
	_, err := l.conn.Exec(ctx, `
		update reconciliation_progress set check_name = $2, done = $3, total = $4, at = $5 where id = $1`,
		l.id, p.Check, p.Done, p.Total, p.At)
	if err != nil {
		return errors.Join(ErrLeadLost, err)
	}
	return nil
}

// Release implements Lead.
func (l *databaseLead) Release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leadTimeout)
	defer cancel()
	if _, err := l.conn.Exec(ctx, `select pg_advisory_unlock(hashtextextended($1, 0))`, leadKey); err != nil {
		// A session that keeps the lock must not go back into the pool.
		_ = l.conn.Conn().Close(ctx)
	}
	l.conn.Release()
}

// reportEvery is how often a run tells how far it is: what others see is that old.
const reportEvery = 2 * time.Second

// pacer reports the progress of one check, not too often, and ends the check when its
// run has lost the lead.
type pacer struct {
	now   func() time.Time
	lead  Lead
	check reconciliation.Check
	lost  context.CancelCauseFunc
	last  time.Time
}

func (p *pacer) say(ctx context.Context, done, total int64) {
	now := p.now()
	if ctx.Err() != nil || !p.last.IsZero() && now.Sub(p.last) < reportEvery {
		return
	}
	p.last = now
	if err := p.lead.Report(ctx, Progress{Check: p.check, Done: done, Total: total, At: now.UTC()}); err != nil {
		p.lost(ErrLeadLost)
	}
}

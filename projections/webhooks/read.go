package webhooks

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/webhook"
)

const (
	// DefaultLimit is a page's size when the caller names none.
	DefaultLimit = 50
	// MaxLimit bounds a page: more is another page.
	MaxLimit = 500
)

var (
	// ErrCursor is a cursor that no page gave out.
	ErrCursor = errors.New("webhooks: not a cursor")
	// ErrNotFound is a delivery that is not there, or not this webhook's.
	ErrNotFound = errors.New("webhooks: no such delivery")
)

// DB is a pool or a connection.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// State is what became of a message.
type State string

// The states. A dead one was given up and can be sent again by hand.
const (
	Pending   State = "pending"
	Delivered State = "delivered"
	Dead      State = "dead"
)

// States are all of them.
func States() []State { return []State{Pending, Delivered, Dead} }

// Delivery is a message to one webhook and how far it came.
type Delivery struct {
	ID        uuid.UUID            `json:"id"`
	Type      catalog.WebhookEvent `json:"type"`
	State     State                `json:"state"`
	CreatedAt time.Time            `json:"created_at"`
	Attempts  int                  `json:"attempts"`
	// LastAt, LastStatus and LastFailure are of the newest attempt that ended; Status is
	// null when there was no answer.
	LastAt      *time.Time     `json:"last_at"`
	LastStatus  *int           `json:"last_status"`
	LastFailure *webhook.Cause `json:"last_failure"`
	// NextAt is when it is tried again, if its webhook may be called then.
	NextAt    *time.Time `json:"next_at"`
	ExpiresAt time.Time  `json:"expires_at"`
	// Body is what is posted; only one delivery by itself has it.
	Body json.RawMessage `json:"body,omitempty"`
}

const columns = `id, type, state, created_at, attempts, last_at, last_status, last_cause,
	case when state = 'pending' then next_at end, expires_at`

func scan(row pgx.CollectableRow) (d Delivery, err error) {
	err = row.Scan(&d.ID, &d.Type, &d.State, &d.CreatedAt, &d.Attempts, &d.LastAt, &d.LastStatus, &d.LastFailure, &d.NextAt, &d.ExpiresAt)
	return d.utc(), err
}

func (d Delivery) utc() Delivery {
	d.CreatedAt, d.ExpiresAt = d.CreatedAt.UTC(), d.ExpiresAt.UTC()
	for _, t := range []*time.Time{d.LastAt, d.NextAt} {
		if t != nil {
			*t = t.UTC()
		}
	}
	return d
}

// Page is one page of deliveries, newest first.
type Page struct {
	Deliveries []Delivery
	// Next is the cursor of the page that follows, empty on the last.
	Next string
}

// List are a webhook's deliveries, in one state or, with an empty one, in any. limit is
// bounded to MaxLimit, and zero means DefaultLimit. A cursor names the last row seen: what
// comes between two pages moves nothing.
func List(ctx context.Context, db DB, tenant, hook string, state State, cursor string, limit int) (Page, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = min(limit, MaxLimit)
	at, id, err := decodeCursor(cursor)
	if err != nil {
		return Page{}, err
	}
	rows, err := db.Query(ctx, `
		select `+columns+` from webhook_deliveries
		where tenant = $1 and webhook = $2 and ($3 = '' or state = $3) and (created_at, id) < ($4, $5)
		order by created_at desc, id desc limit $6`,
		tenant, hook, state, at, id, limit+1)
	if err != nil {
		return Page{}, fmt.Errorf("list deliveries: %w", err)
	}
	list, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return Page{}, fmt.Errorf("list deliveries: %w", err)
	}
	page := Page{Deliveries: list}
	if len(list) > limit {
		page.Deliveries = list[:limit]
		last := list[limit-1]
		page.Next = encodeCursor(last.CreatedAt, last.ID)
	}
	return page, nil
}

// One is a delivery with its body. The error is ErrNotFound.
func One(ctx context.Context, db DB, tenant, hook string, id uuid.UUID) (Delivery, error) {
	rows, err := db.Query(ctx, `
		select `+columns+`, body from webhook_deliveries where tenant = $1 and webhook = $2 and id = $3`, tenant, hook, id)
	if err != nil {
		return Delivery{}, err
	}
	d, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (d Delivery, err error) {
		err = row.Scan(&d.ID, &d.Type, &d.State, &d.CreatedAt, &d.Attempts, &d.LastAt, &d.LastStatus, &d.LastFailure, &d.NextAt, &d.ExpiresAt, &d.Body)
		return d.utc(), err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Delivery{}, ErrNotFound
	}
	return d, err
}

// Again lets a message be sent once more and at once, under the same id, whatever became
// of it. The error is ErrNotFound.
func Again(ctx context.Context, db DB, tenant, hook string, id uuid.UUID, now time.Time) error {
	return pgx.BeginFunc(ctx, beginner{db}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update webhook_deliveries
			set state = 'pending', next_at = $4, expires_at = $5, attempts = case when state = 'pending' then attempts else 0 end
			where tenant = $1 and webhook = $2 and id = $3`,
			tenant, hook, id, now, now.Add(webhook.MaxAge))
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		return wake(ctx, tx, tenant, hook)
	})
}

// SendPing queues a Ping, whatever events the webhook asked for, and returns its id.
func SendPing(ctx context.Context, db DB, tenant, hook string, id uuid.UUID, now time.Time) error {
	return pgx.BeginFunc(ctx, beginner{db}, func(tx pgx.Tx) error {
		n := webhook.News{Type: webhook.TypePing, Tenant: tenant, Data: webhook.Ping{Webhook: hook}}
		if err := insert(ctx, tx, tenant, hook, id, n.Type, webhook.Body(id, now, n), now); err != nil {
			return err
		}
		return wake(ctx, tx, tenant, hook)
	})
}

// wake lets a webhook be called now that was left alone because it failed.
func wake(ctx context.Context, tx pgx.Tx, tenant, hook string) error {
	_, err := tx.Exec(ctx, `update webhook_endpoints set retry_at = '-infinity' where tenant = $1 and webhook = $2`, tenant, hook)
	return err
}

// beginner begins as pgx.BeginFunc wants it.
type beginner struct{ DB }

func (b beginner) Begin(ctx context.Context) (pgx.Tx, error) { return b.BeginTx(ctx, pgx.TxOptions{}) }

// Totals are how many messages wait or were given up, over all webhooks.
type Totals struct {
	Pending, Dead int64
	// Failing is how many webhooks failed last time they were called.
	Failing int64
	// Oldest is when the oldest that waits was queued; nil when none does.
	Oldest *time.Time
}

// Count reads the totals. It looks at what waits and what is dead, not at what was
// delivered.
func Count(ctx context.Context, db DB) (t Totals, err error) {
	rows, err := db.Query(ctx, `
		select (select count(*) from webhook_deliveries where state = 'pending'),
		       (select count(*) from webhook_deliveries where state = 'dead'),
		       (select count(*) from webhook_endpoints where failures > 0 and not disabled),
		       (select min(created_at) from webhook_deliveries where state = 'pending')`)
	if err != nil {
		return t, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Totals])
}

// cursorBytes are microseconds since 1970 and the id.
const cursorBytes = 8 + 16

func encodeCursor(at time.Time, id uuid.UUID) string {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, cursorBytes), uint64(at.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(append(b, id[:]...))
}

// decodeCursor is its inverse; the empty cursor is behind everything.
func decodeCursor(text string) (time.Time, uuid.UUID, error) {
	if text == "" {
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), uuid.Max, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != cursorBytes {
		return time.Time{}, uuid.Nil, ErrCursor
	}
	at := time.UnixMicro(int64(binary.BigEndian.Uint64(b))).UTC()
	if at.Year() < 1970 || at.Year() > 9999 {
		return time.Time{}, uuid.Nil, ErrCursor // beyond what a timestamp of the database holds
	}
	return at, uuid.UUID(b[8:]), nil
}

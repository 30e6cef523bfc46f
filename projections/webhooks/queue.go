package webhooks

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/webhook"
)

const (
	// maxPending is how many messages may wait for one webhook. Beyond it they are dead
	// at once, to be seen and sent again by hand: at a message a second a receiver may be
	// away for three hours.
	maxPending = 10_000
	// forGood is how long it is remembered that a webhook was told of a window that never
	// ends.
	forGood = 400 * 24 * time.Hour
)

// queue writes deliveries in one transaction.
type queue struct {
	tx  pgx.Tx
	now time.Time
	// heard are the endpoints that hear of an organization's affairs, and of nobody's
	// under "". A batch may hold a thousand refusals of one organization.
	heard map[string][]endpoint
	told  map[once]bool
}

type endpoint struct {
	Tenant, Webhook string
	Events          []catalog.WebhookEvent
}

type once struct{ tenant, webhook, name string }

func newQueue(tx pgx.Tx, now time.Time) *queue {
	return &queue{tx: tx, now: now, heard: map[string][]endpoint{}, told: map[once]bool{}}
}

// define lets a webhook hear of what follows. What waits for it is tried at once: the
// change may be the repair.
func (q *queue) define(ctx context.Context, tenant string, w catalog.Webhook) error {
	clear(q.heard)
	events := w.Events
	if events == nil {
		events = []catalog.WebhookEvent{}
	}
	_, err := q.tx.Exec(ctx, `
		insert into webhook_endpoints (tenant, webhook, events, disabled) values ($1, $2, $3, $4)
		on conflict (tenant, webhook) do update
		set events = excluded.events, disabled = excluded.disabled, failures = 0, retry_at = '-infinity'`,
		tenant, w.ID, events, w.Disabled)
	if err != nil {
		return err
	}
	_, err = q.tx.Exec(ctx, `
		update webhook_deliveries set next_at = $3
		where tenant = $1 and webhook = $2 and state = 'pending' and next_at > $3`, tenant, w.ID, q.now)
	return err
}

// remove forgets a webhook with all that it was or was to be told.
func (q *queue) remove(ctx context.Context, tenant, id string) error {
	clear(q.heard)
	for _, sql := range []string{
		`delete from webhook_endpoints where tenant = $1 and webhook = $2`,
		`delete from webhook_deliveries where tenant = $1 and webhook = $2`,
		`delete from webhook_once where tenant = $1 and webhook = $2`,
	} {
		if _, err := q.tx.Exec(ctx, sql, tenant, id); err != nil {
			return err
		}
	}
	return nil
}

// tell queues a message about some news for every webhook that wants it. source names
// what the news is of, at is when it happened.
func (q *queue) tell(ctx context.Context, source string, at time.Time, n webhook.News) error {
	endpoints, err := q.listeners(ctx, n.Tenant)
	if err != nil {
		return err
	}
	for _, e := range endpoints {
		// An organization hears only of what is meant for one, also of its own (Z6).
		if e.Tenant != "" && !n.Type.ForTenants() {
			continue
		}
		if !(catalog.Webhook{Events: e.Events}).Wants(n.Type) {
			continue
		}
		if first, err := q.first(ctx, e, n); err != nil || !first {
			if err != nil {
				return err
			}
			continue
		}
		id := webhook.ID(source, e.Tenant, e.Webhook)
		if err := insert(ctx, q.tx, e.Tenant, e.Webhook, id, n.Type, webhook.Body(id, at, n), q.now); err != nil {
			return err
		}
	}
	return nil
}

// listeners are the webhooks that are switched on, of the operator and of the
// organization that the news is about, and of no other (Z6).
func (q *queue) listeners(ctx context.Context, tenant string) ([]endpoint, error) {
	if list, ok := q.heard[tenant]; ok {
		return list, nil
	}
	rows, err := q.tx.Query(ctx, `
		select tenant, webhook, events from webhook_endpoints
		where tenant in ('', $1) and not disabled order by tenant, webhook`, tenant)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[endpoint])
	if err == nil {
		q.heard[tenant] = list
	}
	return list, err
}

// first reports whether a webhook was not told this yet, and remembers that it is now.
func (q *queue) first(ctx context.Context, e endpoint, n webhook.News) (bool, error) {
	key := once{e.Tenant, e.Webhook, n.Once}
	if n.Once == "" || q.told[key] {
		return n.Once == "", nil
	}
	until := n.Until
	if until.IsZero() {
		until = q.now.Add(forGood)
	}
	tag, err := q.tx.Exec(ctx, `
		insert into webhook_once (tenant, webhook, name, until) values ($1, $2, $3, $4) on conflict do nothing`,
		e.Tenant, e.Webhook, n.Once, until)
	q.told[key] = true
	return tag.RowsAffected() == 1, err
}

// insert queues one message, or keeps it as dead where too many wait.
func insert(ctx context.Context, tx pgx.Tx, tenant, hook string, id uuid.UUID, typ catalog.WebhookEvent, body []byte, now time.Time) error {
	_, err := tx.Exec(ctx, `
		insert into webhook_deliveries (id, tenant, webhook, type, body, created_at, expires_at, next_at, state, last_cause)
		select $1, $2, $3, $4, $5, $6, $7, $6,
			case when full_up then 'dead' else 'pending' end, case when full_up then $8 end
		from (select count(*) >= $9 as full_up from (
			select from webhook_deliveries where tenant = $2 and webhook = $3 and state = 'pending' limit $9) waiting) backlog
		on conflict (id) do nothing`,
		id, tenant, hook, typ, body, now, now.Add(webhook.MaxAge), webhook.CauseBacklog, maxPending)
	return err
}

// Tell queues a message about news that stand in no log.
func Tell(ctx context.Context, tx pgx.Tx, source string, at time.Time, n webhook.News, now time.Time) error {
	return newQueue(tx, now).tell(ctx, source, at, n)
}

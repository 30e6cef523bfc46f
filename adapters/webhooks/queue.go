package webhooks

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/webhook"
)

// message is one that this worker has to itself until its lease ends.
type message struct {
	ID              uuid.UUID
	Tenant, Webhook string
	Type            catalog.WebhookEvent
	Body            []byte
	// Attempts counts this one.
	Attempts  int
	ExpiresAt time.Time
}

// take leases messages that are due, at most so many, of webhooks that work or of those
// that failed last time. It goes from one webhook that has something waiting to the next
// in the index: what one of them has waiting costs the others nothing.
func (d *Deliverer) take(ctx context.Context, failing bool, most int64) ([]message, error) {
	each := perWebhook
	if failing {
		each = 1
	}
	rows, err := d.DB.Query(ctx, `
		with recursive waiting as (
			(select tenant, webhook from webhook_deliveries where state = 'pending' order by tenant, webhook limit 1)
			union all
			select n.tenant, n.webhook from waiting w cross join lateral (
				select d.tenant, d.webhook from webhook_deliveries d
				where d.state = 'pending' and (d.tenant, d.webhook) > (w.tenant, w.webhook)
				order by d.tenant, d.webhook limit 1) n
		), due as (
			select m.id from waiting w
			join webhook_endpoints e using (tenant, webhook)
			cross join lateral (
				select d.id, d.next_at from webhook_deliveries d
				where d.tenant = e.tenant and d.webhook = e.webhook and d.state = 'pending'
				  and d.next_at <= $1 and d.leased_until <= $1
				order by d.next_at
				limit greatest(0, $4 - (
					select count(*) from webhook_deliveries f
					where f.tenant = e.tenant and f.webhook = e.webhook and f.state = 'pending' and f.leased_until > $1))
				for update skip locked) m
			where not e.disabled and (e.failures > 0) = $3 and e.retry_at <= $1
			order by m.next_at limit $5
		)
		update webhook_deliveries d set leased_until = $2, attempts = attempts + 1
		from due where d.id = due.id
		returning d.id, d.tenant, d.webhook, d.type, d.body, d.attempts, d.expires_at`,
		d.Now(), d.Now().Add(lease), failing, each, most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[message])
}

// succeeded holds whoever has the lease by now: the receiver has the message.
func (d *Deliverer) succeeded(ctx context.Context, m message, status int) error {
	_, err := d.DB.Exec(ctx, `
		with told as (
			update webhook_deliveries
			set state = 'delivered', leased_until = '-infinity', last_at = $2, last_status = $3, last_cause = null
			where id = $1)
		update webhook_endpoints set failures = 0, retry_at = '-infinity'
		where tenant = $4 and webhook = $5 and failures > 0`,
		m.ID, d.Now(), status, m.Tenant, m.Webhook)
	return err
}

// didFail plans the next attempt of the message and leaves its webhook alone for a
// while. Attempts that failed side by side count as one failure of the webhook.
func (d *Deliverer) didFail(ctx context.Context, m message, r result, began, next time.Time, dead bool) error {
	return pgx.BeginFunc(ctx, d.DB, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			update webhook_deliveries
			set leased_until = '-infinity', last_at = $3, last_status = nullif($4::integer, 0), last_cause = $5, next_at = $6,
				state = case when $7 then 'dead' else 'pending' end
			where id = $1 and attempts = $2 and state = 'pending'`,
			m.ID, m.Attempts, d.Now(), r.status, r.cause, next, dead)
		if err != nil {
			return err
		}
		var failures int
		err = tx.QueryRow(ctx, `
			select failures from webhook_endpoints where tenant = $1 and webhook = $2 and retry_at <= $3 for update`,
			m.Tenant, m.Webhook, began).Scan(&failures)
		if err != nil {
			return ignoreNoRows(err)
		}
		_, err = tx.Exec(ctx, `
			update webhook_endpoints set failures = $3, retry_at = $4 where tenant = $1 and webhook = $2`,
			m.Tenant, m.Webhook, failures+1, d.Now().Add(webhook.Pause(failures+1, d.Random())))
		return err
	})
}

// postpone gives a message back that was not sent, a little later.
func (d *Deliverer) postpone(ctx context.Context, m message) error {
	_, err := d.DB.Exec(ctx, `
		update webhook_deliveries set leased_until = '-infinity', attempts = attempts - 1, next_at = $3
		where id = $1 and attempts = $2 and state = 'pending'`,
		m.ID, m.Attempts, d.Now().Add(poll))
	return err
}

func ignoreNoRows(err error) error {
	if err == pgx.ErrNoRows {
		return nil
	}
	return err
}

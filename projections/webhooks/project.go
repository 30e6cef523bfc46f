package webhooks

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/webhook"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

// Streams reads one stream of the log.
type Streams interface {
	ReadStream(ctx context.Context, stream string, fromVersion int64, limit int) ([]eventstore.Recorded, error)
}

// Projection makes deliveries.
type Projection struct {
	// Log tells whose request a refusal in the middle of a walk was.
	Log Streams
	Now func() time.Time
}

var _ projections.Projection = Projection{}

// Name implements projections.Projection.
func (Projection) Name() string { return "webhooks" }

// Version implements projections.Projection. It stays: there is nothing to make again.
func (Projection) Version() int { return 1 }

// Types implements projections.Projection.
func (Projection) Types() []string {
	return []string{
		"webhook_defined", "webhook_removed",
		"circuit_opened", "circuit_closed", "alias_degraded", "bill_closed", "request_refused", "request_finalized",
		"budget_threshold_reached", "check_completed",
	}
}

// Money implements projections.Projection: what this release cannot read, nobody is told
// of.
func (Projection) Money() bool { return false }

// Apply implements projections.Projection.
func (p Projection) Apply(ctx context.Context, tx pgx.Tx, batch []eventstore.Recorded) error {
	q := newQueue(tx, p.Now())
	for _, rec := range batch {
		if !mayBeNews(rec) {
			continue
		}
		e, err := projections.Decode(rec)
		if err != nil {
			return err
		}
		switch e := e.(type) {
		case catalog.WebhookDefined:
			err = q.define(ctx, e.Tenant, e.Webhook)
		case catalog.WebhookRemoved:
			err = q.remove(ctx, e.Tenant, e.Webhook)
		default:
			err = p.tell(ctx, q, rec, e)
		}
		if err != nil {
			return fmt.Errorf("webhooks: %w", err)
		}
	}
	return nil
}

// exhausted are the signs of a limit that ran out; most refusals are by a minute's rate.
var exhausted = [][]byte{[]byte(request.CodeInsufficientQuota), []byte(`"per":"day"`), []byte(`"per":"month"`)}

// mayBeNews passes over nearly all of a busy log without decoding it: the ends of
// requests that no budget refused.
func mayBeNews(rec eventstore.Recorded) bool {
	switch rec.Type {
	case "request_refused", "request_finalized":
		return slices.ContainsFunc(exhausted, func(sign []byte) bool { return bytes.Contains(rec.Data, sign) })
	}
	return true
}

func (p Projection) tell(ctx context.Context, q *queue, rec eventstore.Recorded, e any) error {
	news, ok := webhook.Of(e, rec.Stream, rec.Meta.Worker)
	if end, refused := e.(request.RequestFinalized); refused && end.Refusal != nil {
		tenant, err := p.tenant(ctx, rec.Stream)
		if err != nil {
			return err
		}
		news, ok = webhook.Exhausted(tenant, *end.Refusal)
	}
	if !ok {
		return nil
	}
	return q.tell(ctx, webhook.FromLog(rec.Shard, rec.Position), projections.ObservedAt(rec), news)
}

// tenant asks the request's first event whose it is; empty for a stream without one.
func (p Projection) tenant(ctx context.Context, stream string) (string, error) {
	opening, err := p.Log.ReadStream(ctx, stream, 1, 1)
	if err != nil || len(opening) == 0 {
		return "", err
	}
	e, err := projections.Decode(opening[0])
	if err != nil {
		return "", err
	}
	a, _ := e.(request.RequestAdmitted)
	return a.Tenant, nil
}

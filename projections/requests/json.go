package requests

import (
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// Item is a request in a list, as api.md shows it.
type Item struct {
	ID             uuid.UUID        `json:"id"`
	At             time.Time        `json:"at"`
	RequestedModel string           `json:"requested_model"`
	CanonicalModel *string          `json:"canonical_model"`
	Outcome        *request.Outcome `json:"outcome"`
	Attempts       int64            `json:"attempts"`
	FallbackDepth  int64            `json:"fallback_depth"`
	Usage          usage.Usage      `json:"usage"`
	Basis          *usage.Basis     `json:"basis"`
	request.Amounts
	DurationMS      *int64  `json:"duration_ms"`
	TTFTMS          *int64  `json:"ttft_ms"`
	ClientRequestID *string `json:"client_request_id"`
}

// Detail is one request by itself: the item, and what a list has no room for.
type Detail struct {
	Item
	State    State   `json:"state"`
	Code     *string `json:"code"`
	Tenant   string  `json:"tenant"`
	Key      string  `json:"key"`
	Class    *string `json:"class"`
	Dialect  string  `json:"dialect"`
	Stream   bool    `json:"stream"`
	Snapshot *string `json:"snapshot"`
	// Provider is null on a masked route, but for the operator.
	Provider *string `json:"provider"`
}

// ListJSON is a page as it goes out.
type ListJSON struct {
	Data       []Item  `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// Item is the row as a list shows it.
func (r Row) Item() Item {
	return Item{
		ID: r.ID, At: r.At,
		RequestedModel: r.RequestedModel, CanonicalModel: set(r.CanonicalModel),
		Outcome: set(r.Outcome), Attempts: r.Attempts, FallbackDepth: r.FallbackDepth,
		Usage: r.Usage(), Basis: set(r.Basis), Amounts: r.Amounts,
		DurationMS: r.DurationMS, TTFTMS: r.TTFTMS, ClientRequestID: set(r.ClientRequestID),
	}
}

// Detail is the row by itself. Only unmasked shows where a masked route went.
func (r Row) Detail(unmasked bool) Detail {
	d := Detail{
		Item: r.Item(), State: r.State, Code: set(r.Code), Tenant: r.Tenant, Key: r.Key,
		Class: set(r.Class), Dialect: r.Dialect, Stream: r.Stream, Snapshot: set(r.Snapshot),
	}
	if unmasked || !r.Masked {
		d.Provider = set(r.Provider)
	}
	return d
}

// JSON is the page as it goes out.
func (p Page) JSON() ListJSON {
	out := ListJSON{Data: make([]Item, len(p.Rows)), NextCursor: set(p.Next)}
	for i, row := range p.Rows {
		out.Data[i] = row.Item()
	}
	return out
}

// set is nil for what is not there yet: null, not an empty string.
func set[T ~string](v T) *T {
	if v == "" {
		return nil
	}
	return &v
}

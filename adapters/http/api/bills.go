package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/projections/bills"
)

// list is the form of every list: next_cursor is null on the last page.
type list[T any] struct {
	Data []T     `json:"data"`
	Next *string `json:"next_cursor"`
}

func listOf[T any](data []T, next string) list[T] {
	l := list[T]{Data: data}
	if l.Data == nil {
		l.Data = []T{}
	}
	if next != "" {
		l.Next = &next
	}
	return l
}

// listBills is GET /v1/bills: the organization's bills, newest first (M14).
func (a *API) listBills(ctx context.Context, c *call) *edge.Reply {
	all, err := bills.List(ctx, a.Ledger, c.key.Tenant, bills.Caller)
	if err != nil {
		return a.billsFailed(c, err)
	}
	if !wantsCSV(c) {
		return writeJSON(listOf(all, ""))
	}
	t := newTable(columns("period", "status", "unknown_attempts", "lines", "adjustments")...)
	for _, b := range all {
		t.row(slices.Concat([]string{
			b.Period, string(b.Status), number(b.UnknownAttempts), number(int64(len(b.Lines))), number(int64(len(b.Adjustments))),
		}, amountCells(b.Amounts))...)
	}
	return t.reply()
}

// getBill is GET /v1/bills/{period}: a bill with its lines and adjustments.
func (a *API) getBill(ctx context.Context, c *call) *edge.Reply {
	bill, err := bills.Get(ctx, a.Ledger, c.key.Tenant, c.Params["period"], bills.Caller)
	if err != nil {
		return a.billsFailed(c, err)
	}
	if !wantsCSV(c) {
		return writeJSON(bill)
	}
	return billTable(bill).reply()
}

// billTable is a bill as one table: its lines, then its adjustments, which are about
// another period and have no route.
func billTable(b bills.Bill) *table {
	t := newTable(columns("period", "status", "id", "of_period", "reason", "model", "deployment", "credential_owner", "fallback_kind",
		"attempts", "unknown_attempts", "input_tokens", "cached_input_tokens", "output_tokens")...)
	for _, l := range b.Lines {
		t.row(slices.Concat([]string{
			b.Period, string(b.Status), l.ID, b.Period, "", text(l.Model), optional(l.Deployment),
			string(l.CredentialOwner), string(l.FallbackKind), number(l.Attempts), number(l.UnknownAttempts),
			number(l.InputTokens), number(l.CachedInputTokens), number(l.OutputTokens),
		}, amountCells(l.Amounts))...)
	}
	for _, adj := range b.Adjustments {
		t.row(slices.Concat([]string{
			b.Period, string(b.Status), adj.ID, adj.OfPeriod, text(adj.Reason), "", "", "", "", number(adj.Attempts), "", "", "", "",
		}, amountCells(adj.Amounts))...)
	}
	return t
}

// getLineAttempts is GET /v1/bills/{period}/lines/{line}/attempts: what a line, or an
// adjustment, adds up.
func (a *API) getLineAttempts(ctx context.Context, c *call) *edge.Reply {
	q := query{values: c.Query}
	cursor, limit := q.text("cursor"), int(min(q.number("limit"), bills.MaxLimit))
	if q.bad != nil {
		return a.fail(c.Request, q.bad)
	}
	page, err := bills.LineAttempts(ctx, a.Ledger, c.key.Tenant, c.Params["period"], c.Params["line"], bills.Caller, cursor, limit)
	if err != nil {
		return a.billsFailed(c, err)
	}
	if !wantsCSV(c) {
		return writeJSON(listOf(page.Attempts, page.Next))
	}
	t := newTable(columns("request_id", "attempt", "at", "key", "provider", "model", "deployment", "credential_owner", "fallback_kind",
		"basis", "input_tokens", "cached_input_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens", "output_tokens",
		"reasoning_tokens", "corrected")...)
	for _, at := range page.Attempts {
		u := at.Usage
		t.row(slices.Concat([]string{
			at.RequestID.String(), number(int64(at.Attempt)), at.At.Format(time.RFC3339Nano), text(at.Key), optional(at.Provider),
			text(at.Model), optional(at.Deployment), string(at.CredentialOwner), string(at.FallbackKind), string(at.Basis),
			tokens(u.Input), tokens(u.CachedInput), tokens(u.CacheWrite5m), tokens(u.CacheWrite1h), tokens(u.Output), tokens(u.Reasoning),
			map[bool]string{true: "true", false: "false"}[at.Corrected],
		}, amountCells(at.Amounts))...)
	}
	reply := t.reply()
	if page.Next != "" {
		reply.Header.Set(nextCursor, page.Next)
	}
	return reply
}

// tokens is a count that was reported, or an empty cell: unknown is not zero (M6).
func tokens(n usage.Count) string {
	if !n.Known() {
		return ""
	}
	return number(n.N)
}

// billsFailed says why a bill or usage cannot be shown. Another organization's reads as
// not there (Z6).
func (a *API) billsFailed(c *call, err error) *edge.Reply {
	switch {
	case errors.Is(err, bills.ErrNotFound):
		e := apierror.New(apierror.InvalidRequest)
		e.Status, e.Message = http.StatusNotFound, "There is no such bill."
		if c.Params["line"] != "" {
			e.Message = "There is no such line on this bill."
		}
		return a.fail(c.Request, e)
	case errors.Is(err, bills.ErrCursor):
		return a.fail(c.Request, badQuery("cursor", "one that a former page returned"))
	}
	a.Logger.Error("bills cannot be read", "error", err)
	return a.unavailable(c.Request)
}

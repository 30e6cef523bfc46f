package requests

import (
	"strings"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

// types are the events that change a row.
var types = []string{
	"request_admitted", "request_refused", "attempt_reserved", "attempt_committed", "attempt_settled",
	"model_changed", "request_finalized",
}

// ID is the request that an event belongs to.
func ID(stream string) (uuid.UUID, bool) {
	id, ok := strings.CutPrefix(stream, "request/")
	if !ok {
		return uuid.Nil, false
	}
	u, err := uuid.Parse(id)
	return u, err == nil
}

// Fold adds up a request's events, in order, whatever stands in row already. Types
// that say nothing about the row, also unknown ones, are passed over.
func Fold(row Row, stream ...eventstore.Recorded) (Row, error) {
	for _, rec := range stream {
		if !wants(rec.Type) {
			continue
		}
		e, err := projections.Decode(rec)
		if err != nil {
			return row, err
		}
		row = apply(row, rec, e)
	}
	return row, nil
}

func wants(typ string) bool {
	for _, t := range types {
		if t == typ {
			return true
		}
	}
	return false
}

// apply folds one event.
func apply(row Row, rec eventstore.Recorded, e event.Event) Row {
	if row.State == "" {
		row.ID, _ = ID(rec.Stream)
		row.State, row.At = Open, projections.ObservedAt(rec)
	}
	switch e := e.(type) {
	case request.RequestAdmitted:
		row.Tenant, row.Key, row.Dialect = e.Tenant, e.Key, e.Dialect
		row.RequestedModel, row.CanonicalModel = e.RequestedModel, e.CanonicalModel
		row.Stream, row.Snapshot, row.ClientRequestID = e.Stream, e.Snapshot, e.ClientRequestID
		row.Class = e.Class
	case request.RequestRefused:
		row.Tenant, row.Key, row.Dialect = e.Tenant, e.Key, e.Dialect
		row.RequestedModel, row.Snapshot, row.ClientRequestID = e.RequestedModel, e.Snapshot, e.ClientRequestID
		row.State, row.Outcome, row.Code = Final, request.Refused, e.Code
		row.DurationMS = new(int64)
	case request.AttemptReserved:
		row.Attempts = max(row.Attempts, int64(e.Attempt))
		row.FallbackDepth = int64(e.FallbackDepth)
		row.Provider, row.Masked = e.Provider, e.Masked
	case request.AttemptCommitted:
		row.TTFTMS = &e.TTFTMS
	case request.AttemptSettled:
		row = settle(row, e)
	case request.ModelChanged:
		row.CanonicalModel = e.To
	case request.RequestFinalized:
		row = finalize(row, e)
	}
	return row
}

func settle(row Row, e request.AttemptSettled) Row {
	row.Amounts = row.Add(e.Amounts)
	row.Basis = weaker(row.Basis, e.Basis)
	row.InputTokens = sum(row.InputTokens, e.Usage.Input)
	row.CachedInputTokens = sum(row.CachedInputTokens, e.Usage.CachedInput)
	row.CacheWrite5mTokens = sum(row.CacheWrite5mTokens, e.Usage.CacheWrite5m)
	row.CacheWrite1hTokens = sum(row.CacheWrite1hTokens, e.Usage.CacheWrite1h)
	row.OutputTokens = sum(row.OutputTokens, e.Usage.Output)
	row.ReasoningTokens = sum(row.ReasoningTokens, e.Usage.Reasoning)
	return row
}

func finalize(row Row, e request.RequestFinalized) Row {
	row.State, row.Outcome, row.Code = Final, e.Outcome, e.Code
	row.Attempts, row.FallbackDepth = int64(e.Attempts), int64(e.FallbackDepth)
	if e.CanonicalModel != "" {
		row.CanonicalModel = e.CanonicalModel
	}
	row.DurationMS = &e.DurationMS
	if e.TTFTMS != nil {
		row.TTFTMS = e.TTFTMS
	}
	return row
}

// sum adds a reported count; what was not reported adds nothing and does not turn
// nothing into zero (M4).
func sum(total *int64, c usage.Count) *int64 {
	if !c.Known() {
		return total
	}
	n := c.N
	if total != nil {
		n += *total
	}
	return &n
}

// strength orders the bases; a sum is as good as its weakest part (M6).
var strength = map[usage.Basis]int{usage.BasisUnknown: 1, usage.BasisEstimated: 2, usage.BasisReported: 3}

func weaker(a, b usage.Basis) usage.Basis {
	if a == "" || (b != "" && strength[b] < strength[a]) {
		return b
	}
	return a
}

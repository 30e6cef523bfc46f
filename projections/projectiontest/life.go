package projectiontest

import (
	"encoding/binary"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
)

// Start is when the first life begins.
var Start = time.Date(2026, 11, 29, 10, 0, 0, 123_000, time.UTC)

// RequestID is the id of the nth request: a UUIDv7 of its own millisecond.
func RequestID(n int) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(Start.UnixMilli()+int64(n))<<16)
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	id[6], id[8] = 0x70, id[8]&0x3f|0x80
	return id
}

// Stream records events as the stream of the nth request, a millisecond apart. They
// have no positions: a Log gives those.
func Stream(n int, events ...event.Event) []eventstore.Recorded {
	recorded := make([]eventstore.Recorded, len(events))
	at := Start.Add(time.Duration(n) * time.Millisecond)
	for i, e := range events {
		enc := event.Encode(e)
		recorded[i] = eventstore.Recorded{
			Event:         eventstore.Event{Type: enc.Type, Version: enc.Version, At: at, Data: enc.Data},
			Stream:        "request/" + RequestID(n).String(),
			StreamVersion: int64(i + 1),
			RecordedAt:    at,
			Meta:          eventstore.Meta{Worker: "w1"},
		}
		at = at.Add(time.Millisecond)
	}
	return recorded
}

// Lives draws lives of requests that could have happened and mixes them as
// concurrent workers would. Some are still open.
func Lives(t *rapid.T, most int) []eventstore.Recorded {
	lives := make([][]eventstore.Recorded, rapid.IntRange(1, most).Draw(t, "requests"))
	for n := range lives {
		events := Life(t)
		if rapid.IntRange(0, 4).Draw(t, "open") == 0 {
			events = events[:rapid.IntRange(1, len(events)).Draw(t, "said so far")]
		}
		lives[n] = Stream(n, events...)
	}
	return Mix(t, lives)
}

// Mix interleaves streams, keeping each in order.
func Mix(t *rapid.T, streams [][]eventstore.Recorded) []eventstore.Recorded {
	var mixed []eventstore.Recorded
	for {
		var left []int
		for i, s := range streams {
			if len(s) > 0 {
				left = append(left, i)
			}
		}
		if len(left) == 0 {
			return mixed
		}
		i := rapid.SampledFrom(left).Draw(t, "next")
		mixed = append(mixed, streams[i][0])
		streams[i] = streams[i][1:]
	}
}

// Life draws one complete life.
func Life(t *rapid.T) []event.Event {
	tenant := rapid.SampledFrom([]string{"acme", "globex"}).Draw(t, "tenant")
	if rapid.IntRange(0, 9).Draw(t, "refused") == 0 {
		return []event.Event{request.RequestRefused{
			Tenant: tenant, Key: "k1", Dialect: "chat", RequestedModel: "fast",
			Refusal: request.Refusal{Code: "insufficient_quota", Scope: "organization", Limit: 10, Used: 10, Unit: "nanousd"},
		}}
	}
	l := life{tenant: tenant, events: []event.Event{Admitted(tenant)}}
	l.attempts(t)
	return l.events
}

// Admitted opens a request of an organization.
func Admitted(tenant string) request.RequestAdmitted {
	return request.RequestAdmitted{
		Tenant: tenant, Key: "k1", Dialect: "chat", RequestedModel: "fast", CanonicalModel: "fable-5",
		Snapshot: "sha256:ab", DeadlineMS: 600_000, MaxAttempts: 8, ClientRequestID: "mine",
		Estimate: request.Estimate{InputTokens: 812, MaxOutputTokens: 1024},
	}
}

type life struct {
	tenant string
	events []event.Event
}

func (l *life) say(e event.Event) { l.events = append(l.events, e) }

func (l *life) attempts(t *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(t, "attempts")
	for i := 1; i <= n; i++ {
		if rapid.Bool().Draw(t, "skip") {
			l.say(request.RouteSkipped{Rung: i, Provider: "p9", Model: "fable-5", Reason: request.SkipBreakerOpen})
		}
		reserved := l.reserve(t, i)
		l.say(reserved)
		if i == n && rapid.Bool().Draw(t, "answers") {
			l.answer(t, reserved)
			return
		}
		l.fail(t, reserved)
	}
	l.say(request.RequestFinalized{
		Outcome: request.Failed, Code: "upstream_exhausted", Attempts: n, FallbackDepth: n - 1, DurationMS: 900,
	})
}

func (l *life) reserve(t *rapid.T, attempt int) request.AttemptReserved {
	price := decimal.RequireFromString("3.00")
	return request.AttemptReserved{
		Attempt: attempt, Rung: attempt - 1, Kind: request.KindFailover, Tenant: l.tenant,
		Provider:        rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "provider"),
		Model:           "fable-5",
		Deployment:      rapid.SampledFrom([]string{"fable-5@p1", "fable-5@p2"}).Draw(t, "deployment"),
		CredentialOwner: rapid.SampledFrom([]request.Owner{request.Operator, request.Workspace}).Draw(t, "owner"),
		FallbackKind:    request.SameModel, FallbackDepth: attempt - 1,
		Masked:   rapid.Bool().Draw(t, "masked"),
		Prices:   money.Prices{Input: &price, Output: &price},
		Reserved: money.NanoUSD(rapid.Int64Range(0, 1e9).Draw(t, "reserved")),
		Holds:    []string{"org/" + l.tenant + "/usd/month/2026-11", "org/" + l.tenant + "/usd/total/total"},
	}
}

// settled is the settlement of a reservation that was not paid for.
func settled(r request.AttemptReserved) request.AttemptSettled {
	return request.AttemptSettled{
		Attempt: r.Attempt, Tenant: r.Tenant, Key: "k1", Provider: r.Provider, Model: r.Model, Deployment: r.Deployment,
		CredentialOwner: r.CredentialOwner, FallbackKind: r.FallbackKind,
		Basis: usage.BasisReported, Usage: usage.Usage{Input: usage.Of(0), Output: usage.Of(0)},
		Reserved: r.Reserved, Holds: r.Holds,
	}
}

func (l *life) fail(t *rapid.T, r request.AttemptReserved) {
	if rapid.Bool().Draw(t, "throttled") {
		l.say(request.AttemptThrottled{Attempt: r.Attempt, Status: 429, DurationMS: 20})
		l.say(request.ThrottleDecided{Attempt: r.Attempt, Decision: request.ThrottleFailover, Mode: "maximize_availability"})
	} else {
		l.say(request.AttemptFailed{Attempt: r.Attempt, Failure: failure.ServerError, Status: 503, DurationMS: 212})
	}
	s := settled(r)
	if rapid.Bool().Draw(t, "lost") {
		s.Basis, s.Usage = usage.BasisUnknown, usage.Usage{}
	}
	l.say(s)
	l.say(request.ReservationReleased{Attempt: r.Attempt, Released: r.Reserved})
}

func (l *life) answer(t *rapid.T, r request.AttemptReserved) {
	l.say(request.AttemptCommitted{Attempt: r.Attempt, FirstOutput: "text", TTFTMS: 340})
	s := settled(r)
	s.Usage = usage.Usage{
		Input:       usage.Of(rapid.Int64Range(1, 1e6).Draw(t, "input")),
		CachedInput: usage.Of(0), Output: usage.Of(rapid.Int64Range(0, 1e5).Draw(t, "output")),
	}
	charge := money.NanoUSD(rapid.Int64Range(0, 1e9).Draw(t, "charge"))
	s.Amounts = request.Amounts{List: charge, Charge: charge, ProviderCost: charge / 2}
	l.say(s)
	if charge > r.Reserved {
		l.say(request.ReservationOverrun{Attempt: r.Attempt, Overrun: charge - r.Reserved})
	}
	l.say(request.RequestFinalized{
		Outcome: request.Completed, Attempts: r.Attempt, FallbackDepth: r.FallbackDepth, CanonicalModel: r.Model, DurationMS: 1240,
	})
}

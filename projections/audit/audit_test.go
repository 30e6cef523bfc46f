package audit_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/audit"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

// log is one in memory that can also be read by stream.
type log struct{ *projectiontest.Log }

func (l log) ReadStream(ctx context.Context, stream string, from int64, limit int) ([]eventstore.Recorded, error) {
	all, err := l.ReadAll(ctx, 0, 0, 1<<20)
	var found []eventstore.Recorded
	for _, rec := range all {
		if rec.Stream == stream && rec.StreamVersion >= from && len(found) < limit {
			found = append(found, rec)
		}
	}
	return found, err
}

func run(t interface{ Fatal(...any) }, events []eventstore.Recorded, now time.Time) audit.Report {
	report, err := audit.Run(context.Background(), log{projectiontest.NewLog(events...)}, 0, now, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Whatever may happen to requests, whole or cut short, nothing is found.
func TestPossibleLivesAreClean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := projectiontest.Lives(t, 6)
		if report := run(t, events, projectiontest.Start); !report.OK() || report.Events != int64(len(events)) {
			t.Fatalf("%+v", report)
		}
	})
}

func reserved(attempt int) request.AttemptReserved {
	return request.AttemptReserved{Attempt: attempt, Reserved: 100, Holds: []string{"a"}}
}

func settled(attempt int) request.AttemptSettled {
	return request.AttemptSettled{Attempt: attempt, Reserved: 100, Holds: []string{"a"}}
}

func final(attempts int) request.RequestFinalized {
	return request.RequestFinalized{Outcome: request.Failed, Attempts: attempts}
}

// Each invariant of events.md is found broken, at the event that breaks it.
func TestBrokenInvariantsAreFound(t *testing.T) {
	admitted := projectiontest.Admitted("acme")
	narrow := admitted
	narrow.MaxAttempts = 1
	other := settled(1)
	other.Holds = []string{"b"}
	less := settled(1)
	less.Reserved = 99
	for name, c := range map[string]struct {
		events   []event.Event
		position int64
		reason   string
	}{
		"1: no opening":             {[]event.Event{reserved(1)}, 1, "before the request was admitted"},
		"1: two openings":           {[]event.Event{admitted, admitted}, 2, "not the first"},
		"1: two ends":               {[]event.Event{admitted, final(0), final(0)}, 3, "after the request was closed"},
		"1: life after refusal":     {[]event.Event{request.RequestRefused{}, reserved(1)}, 2, "after the request was closed"},
		"2: settled twice":          {[]event.Event{admitted, reserved(1), settled(1), settled(1)}, 4, "settled twice"},
		"2: never settled":          {[]event.Event{admitted, reserved(1), final(1)}, 3, "still holds"},
		"2: settled unreserved":     {[]event.Event{admitted, settled(1)}, 2, "nobody reserved"},
		"3: two commits":            {[]event.Event{admitted, reserved(1), request.AttemptCommitted{Attempt: 1}, request.AttemptCommitted{Attempt: 1}}, 4, "committed after"},
		"3: attempt after a commit": {[]event.Event{admitted, reserved(1), request.AttemptCommitted{Attempt: 1}, reserved(2)}, 4, "had committed"},
		"4: a gap":                  {[]event.Event{admitted, reserved(2)}, 2, "follows attempt 0"},
		"4: too many":               {[]event.Event{narrow, reserved(1), settled(1), reserved(2)}, 4, "at most 1"},
		"5: another counter":        {[]event.Event{admitted, reserved(1), other}, 3, "b is held at -100"},
		"5: another amount":         {[]event.Event{admitted, reserved(1), less}, 3, "releases 99 of the 100"},
	} {
		t.Run(name, func(t *testing.T) {
			report := run(t, projectiontest.Stream(0, c.events...), projectiontest.Start)
			if report.OK() || report.Violations[0].Position != c.position || !strings.Contains(report.Violations[0].Reason, c.reason) {
				t.Errorf("%+v", report)
			}
		})
	}
}

// An open request is none of the audit's business until its time is over (2).
func TestOverdueRequestIsFound(t *testing.T) {
	events := projectiontest.Stream(0, projectiontest.Admitted("acme"), reserved(1)) // deadline 10 min
	if report := run(t, events, projectiontest.Start.Add(12*time.Minute)); !report.OK() || report.Open != 1 {
		t.Errorf("too early: %+v", report)
	}
	if report := run(t, events, projectiontest.Start.Add(14*time.Minute)); report.OK() {
		t.Errorf("overlooked: %+v", report)
	}
}

// A hold whose usage was unknown may be resolved long after the request's end.
func TestMeterHoldIsResolvedAfterTheEnd(t *testing.T) {
	unknown := settled(1)
	unknown.Basis = usage.BasisUnknown
	events := projectiontest.Stream(0, projectiontest.Admitted("acme"), reserved(1), unknown,
		request.MeterHoldPlaced{Attempt: 1, Tokens: 5}, final(1), request.MeterHoldResolved{Attempt: 1, By: "age"})
	if report := run(t, events, projectiontest.Start); !report.OK() || report.Requests != 1 {
		t.Errorf("%+v", report)
	}
}

// What a meter hold keeps of the limits may outlive its request, and nothing beyond it.
//
// Rules: R2.
func TestMeterHoldMayBeHeldAtTheEnd_R2(t *testing.T) {
	takes := func(held int64) []request.Take { return []request.Take{{Key: "org/acme/tokens/held", Held: held}} }
	first, unknown := reserved(1), settled(1)
	first.Takes, unknown.Takes, unknown.Basis = takes(7000), takes(-7000), usage.BasisUnknown
	hold := request.MeterHoldPlaced{Attempt: 1, Tokens: 9, Takes: takes(9000)}
	lives := []event.Event{projectiontest.Admitted("acme"), first, unknown, hold, final(1)}
	if report := run(t, projectiontest.Stream(0, lives...), projectiontest.Start); !report.OK() {
		t.Errorf("%+v", report)
	}
	unknown.Takes = takes(-6000)
	lives[2] = unknown
	if report := run(t, projectiontest.Stream(0, lives...), projectiontest.Start); report.OK() {
		t.Error("what is held beyond the meter hold was overlooked")
	}
}

func TestMissingEventOfAStreamIsFound(t *testing.T) {
	events := projectiontest.Stream(0, projectiontest.Admitted("acme"), reserved(1), settled(1), final(1))
	report := run(t, append(events[:2:2], events[3]), projectiontest.Start)
	if report.OK() || !strings.Contains(report.Violations[0].Reason, "stream version 4, want 3") {
		t.Errorf("%+v", report)
	}
}

// A report is bounded; its count is not.
func TestReportIsBounded(t *testing.T) {
	var events []event.Event
	for range 300 {
		events = append(events, projectiontest.Admitted("acme"))
	}
	report := run(t, projectiontest.Stream(0, events...), projectiontest.Start)
	if report.Found != 299 || len(report.Violations) != 100 {
		t.Errorf("%d found, %d listed", report.Found, len(report.Violations))
	}
}

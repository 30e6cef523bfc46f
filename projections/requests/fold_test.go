package requests_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
	"github.com/sluice-gateway/sluice/projections/requests"
)

func fold(t testing.TB, events ...event.Event) requests.Row {
	t.Helper()
	row, err := requests.Fold(requests.Row{}, projectiontest.Stream(0, events...)...)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// A request is in the list from its admission on.
//
// Rules: X2.
func TestAdmittedIsOpen_X2(t *testing.T) {
	row := fold(t, projectiontest.Admitted("acme"))
	want := requests.Row{
		ID: projectiontest.RequestID(0), Tenant: "acme", Key: "k1", At: projectiontest.Start, State: requests.Open,
		RequestedModel: "fast", CanonicalModel: "fable-5", Dialect: "chat", Snapshot: "sha256:ab", ClientRequestID: "mine",
	}
	if diff := cmp.Diff(want, row); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

func TestRefusedIsFinal(t *testing.T) {
	row := fold(t, request.RequestRefused{Tenant: "acme", RequestedModel: "fast", Refusal: request.Refusal{Code: "insufficient_quota"}})
	if row.State != requests.Final || row.Outcome != request.Refused || row.Code != "insufficient_quota" {
		t.Errorf("%+v", row)
	}
}

func TestModelChangeIsShownWhileOpen(t *testing.T) {
	row := fold(t, projectiontest.Admitted("acme"), request.ModelChanged{From: "fable-5", To: "fable-4"})
	if row.CanonicalModel != "fable-4" {
		t.Errorf("canonical model %q", row.CanonicalModel)
	}
}

func settlement(attempt int, basis usage.Basis, u usage.Usage) request.AttemptSettled {
	return request.AttemptSettled{
		Attempt: attempt, Basis: basis, Usage: u,
		Amounts: request.Amounts{List: 4, Charge: 5, ProviderCost: 3, Subsidy: 2, Surcharge: 1},
	}
}

// One unknown attempt makes the sum unknown, whatever the others knew (M6).
func TestBasisIsTheWeakest_M6(t *testing.T) {
	reported, estimated, unknown := usage.BasisReported, usage.BasisEstimated, usage.BasisUnknown
	for _, c := range []struct {
		attempts []usage.Basis
		want     usage.Basis
	}{
		{nil, ""},
		{[]usage.Basis{reported}, reported},
		{[]usage.Basis{reported, estimated}, estimated},
		{[]usage.Basis{estimated, reported}, estimated},
		{[]usage.Basis{unknown, reported}, unknown},
		{[]usage.Basis{reported, unknown, estimated}, unknown},
	} {
		events := []event.Event{projectiontest.Admitted("acme")}
		for i, b := range c.attempts {
			events = append(events, settlement(i+1, b, usage.Usage{}))
		}
		if got := fold(t, events...).Basis; got != c.want {
			t.Errorf("%v: %q, want %q", c.attempts, got, c.want)
		}
	}
}

// Tokens that nobody reported stay absent; a reported zero is a zero (M4).
func TestAbsentIsNotZero_M4(t *testing.T) {
	row := fold(t, projectiontest.Admitted("acme"),
		settlement(1, usage.BasisUnknown, usage.Usage{Input: usage.Count{State: usage.Null}}),
		settlement(2, usage.BasisReported, usage.Usage{Input: usage.Of(7), CachedInput: usage.Of(0)}),
		settlement(3, usage.BasisReported, usage.Usage{Input: usage.Of(5)}),
	)
	want := usage.Usage{Input: usage.Of(12), CachedInput: usage.Of(0)}
	if diff := cmp.Diff(want, row.Usage()); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	amounts := request.Amounts{List: 12, Charge: 15, ProviderCost: 9, Subsidy: 6, Surcharge: 3}
	if row.Amounts != amounts {
		t.Errorf("amounts %+v, want %+v", row.Amounts, amounts)
	}
}

// However the runner cuts the log into batches, the table holds what one fold over
// each stream makes (E4).
func TestAnySplitIsOneBatch_E4(t *testing.T) {
	pool := projectiontest.NewPool(t)
	rapid.Check(t, func(rt *rapid.T) {
		if _, err := pool.Exec(t.Context(), "delete from requests"); err != nil {
			rt.Fatal(err)
		}
		log := projectiontest.Lives(rt, 6)
		want := map[string]requests.Row{}
		for _, rec := range log {
			row, err := requests.Fold(want[rec.Stream], rec)
			if err != nil {
				rt.Fatal(err)
			}
			want[rec.Stream] = row
		}
		for rest := log; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "batch")
			project(t, pool, rest[:n])
			rest = rest[n:]
		}
		page, err := requests.List(t.Context(), pool, requests.Filter{}, "", requests.MaxLimit)
		if err != nil {
			rt.Fatal(err)
		}
		got := map[string]requests.Row{}
		for _, row := range page.Rows {
			got["request/"+row.ID.String()] = row
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("table (-fold +table):\n%s", diff)
		}
	})
}

// An event of a later release says nothing to the list and does not stop it (C15).
func TestUnknownTypesArePassedOver_C15(t *testing.T) {
	stream := projectiontest.Stream(0, projectiontest.Admitted("acme"))
	stream = append(stream, eventstore.Recorded{
		Event: eventstore.Event{Type: "attempt_teleported", Version: 1, Data: []byte(`{}`)}, Stream: stream[0].Stream, StreamVersion: 2,
	})
	row, err := requests.Fold(requests.Row{}, stream...)
	if err != nil || row.State != requests.Open {
		t.Errorf("%+v, %v", row, err)
	}
}

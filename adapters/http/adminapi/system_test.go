package adminapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/http/adminapi/adminapitest"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
)

// The raw log comes in its order, from a position on, page by page, and narrowed.
func TestEvents(t *testing.T) {
	s := start(t)
	all := eventsOf(t, do(t, s, 200, "GET", "/events?limit=1000", "", ""))
	if len(all) != len(s.Log.Events) {
		t.Fatalf("%d events of %d", len(all), len(s.Log.Events))
	}
	for i, e := range all {
		if e.Position != int64(i+1) || e.Meta.Actor != "cli:ada" || len(e.Data) == 0 {
			t.Errorf("event %d is %+v", i, e)
		}
	}

	var paged []rawEvent
	for path := "/events?limit=3"; path != ""; {
		a := do(t, s, 200, "GET", path, "", "")
		paged = append(paged, eventsOf(t, a)...)
		next := a.Field("next_cursor")
		if path = ""; next != "null" {
			path = "/events?limit=3&after=" + next[1:len(next)-1]
		}
	}
	if len(paged) != len(all) {
		t.Errorf("%d events in pages, %d in one", len(paged), len(all))
	}

	of := eventsOf(t, do(t, s, 200, "GET", "/events?stream=deployment/a@east", "", ""))
	if len(of) != 2 || of[0].Type != "deployment_defined" || of[1].Type != "price_set" {
		t.Errorf("of one stream: %+v", of)
	}
	if rest := eventsOf(t, do(t, s, 200, "GET", fmt.Sprintf("/events?stream=deployment/a@east&after=%d", of[0].Position), "", "")); len(rest) != 1 {
		t.Errorf("of one stream after a position: %+v", rest)
	}
	if prices := eventsOf(t, do(t, s, 200, "GET", "/events?type=price_set", "", "")); len(prices) != 3 {
		t.Errorf("of one type: %+v", prices)
	}
	check(t, do(t, s, 400, "GET", "/events?after=x", "", ""), "error.field", `"after"`)
	check(t, do(t, s, 400, "GET", "/events?stream=%20", "", ""), "error.field", `"stream"`)
}

type rawEvent struct {
	Position int64           `json:"position"`
	Type     string          `json:"type"`
	Meta     eventstore.Meta `json:"meta"`
	Data     json.RawMessage `json:"data"`
}

func eventsOf(t *testing.T, a adminapitest.Answer) []rawEvent {
	t.Helper()
	var p struct{ Data []rawEvent }
	if err := json.Unmarshal(a.Body, &p); err != nil {
		t.Fatal(err)
	}
	return p.Data
}

// Lists are paged: nothing that comes out is unbounded.
func TestListsArePaged(t *testing.T) {
	s := start(t)
	first := do(t, s, 200, "GET", "/deployments?limit=2", "", "")
	check(t, first, "next_cursor", `"2"`)
	last := do(t, s, 200, "GET", "/deployments?limit=2&cursor=2", "", "")
	check(t, last, "next_cursor", "null")
	mentions(t, string(last.Body), "b@west")
	check(t, do(t, s, 200, "GET", "/deployments?cursor=99", "", ""), "data", "[]")
	check(t, do(t, s, 400, "GET", "/deployments?cursor=-1", "", ""), "error.field", `"cursor"`)
	for _, kind := range []string{"providers", "models", "classes", "tenants"} {
		do(t, s, 200, "GET", "/"+kind, "", "")
	}
}

// A rebuild runs behind the request, one at a time, and can be watched (E4).
func TestRebuildRunsBehind_E4(t *testing.T) {
	s := start(t)
	proceed, began := make(chan error), make(chan string)
	s.Rebuild = func(ctx context.Context, name string, progress func(projections.Progress)) error {
		progress(projections.Progress{Done: 3, Total: 9})
		began <- name
		select {
		case err := <-proceed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	check(t, do(t, s, 200, "GET", "/projections", "", ""), "rebuild", "null")
	check(t, do(t, s, 404, "POST", "/projections/nonsense/rebuild", "", ""), "error.code", `"not_found"`)

	check(t, do(t, s, 202, "POST", "/projections/bills/rebuild", "", ""), "state", `"running"`)
	if name := <-began; name != "bills" {
		t.Errorf("rebuilds %s", name)
	}
	check(t, do(t, s, 409, "POST", "/projections/requests/rebuild", "", ""), "error.code", `"rebuild_running"`)
	running := do(t, s, 200, "GET", "/projections", "", "")
	check(t, running, "rebuild.done_events", "3")
	check(t, running, "rebuild.total_events", "9")

	proceed <- errors.New("a cause that stays inside")
	// The next one is accepted only when the first is over.
	var failed adminapitest.Answer
	for failed = running; failed.Field("rebuild.state") == `"running"`; {
		failed = do(t, s, 200, "GET", "/projections", "", "")
	}
	check(t, failed, "rebuild.state", `"failed"`)
	do(t, s, 202, "POST", "/projections/requests/rebuild", "", "")
	<-began
	proceed <- nil
}

// A trail on this listener hides nothing (X1).
func TestTrailIsUnmasked_X1(t *testing.T) {
	s := start(t)
	const id = "019b3c1e-7c1a-7d58-9f3e-0a4c1c1f5b77"
	now := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	var events []eventstore.Event
	for _, e := range []event.Event{
		request.RequestAdmitted{Tenant: "acme", RequestedModel: "a", CanonicalModel: "a"},
		request.AttemptReserved{Attempt: 1, Provider: "secret-provider", Model: "a", Deployment: "a@east", Masked: true},
	} {
		encoded := event.Encode(e)
		events = append(events, eventstore.Event{Type: encoded.Type, Version: encoded.Version, At: now, Data: encoded.Data})
	}
	_, err := s.Log.AppendAll(t.Context(), []eventstore.Append{{Stream: "request/" + id, Events: events}})
	if err != nil {
		t.Fatal(err)
	}
	mentions(t, string(do(t, s, 200, "GET", "/requests/"+id+"/trail", "", "").Body), "secret-provider")
	mentions(t, string(do(t, s, 200, "GET", "/requests/"+id, "", "").Body), "secret-provider")
	for _, absent := range []string{"nonsense", "019b3c1e-7c1a-7d58-9f3e-0a4c1c1f5b78"} {
		check(t, do(t, s, 404, "GET", "/requests/"+absent+"/trail", "", ""), "error.code", `"not_found"`)
	}
	for _, bad := range []string{"since=yesterday", "limit=x", "min_cost=-1"} {
		do(t, s, 400, "GET", "/requests?"+bad, "", "")
	}
}

// The worker says what it serves from and which circuits are open.
func TestSnapshotAndCircuits(t *testing.T) {
	s := start(t)
	snapshot := do(t, s, 200, "GET", "/snapshot", "", "")
	check(t, snapshot, "id", `"`+s.Catalog.Current().ID+`"`)
	check(t, snapshot, "objects.deployments", "3")
	check(t, snapshot, "stale", "false")
	check(t, do(t, s, 200, "GET", "/circuits", "", ""), "circuits", "[]")
}

package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

func TestFoldBuildsWhatWasDefined(t *testing.T) {
	got := folded(history(t, fixture())).Objects()
	if diff := cmp.Diff(fixture().Canonical(), got); diff != "" {
		t.Errorf("another catalog (-want +got):\n%s", diff)
	}
}

// A new definition keeps what has its own events; a removal and a new beginning
// does not bring old prices back.
func TestFoldKeepsPartsApart(t *testing.T) {
	state := folded(history(t, fixture()))
	state.Fold(catalog.Recorded{Stream: "deployment/a@east", Version: 3, Position: 100, Event: catalog.DeploymentDefined{
		Deployment: catalog.Deployment{ID: "a@east", Provider: "east", UpstreamModel: "a-9"},
	}})
	d, _ := state.Snapshot().Deployment("a@east")
	if d.UpstreamModel != "a-9" || !d.Prices.Known() {
		t.Errorf("after a new definition: %+v", d)
	}
	state.Fold(catalog.Recorded{Stream: "deployment/a@east", Version: 4, Position: 101, Event: catalog.DeploymentRemoved{Deployment: "a@east"}})
	state.Fold(catalog.Recorded{Stream: "deployment/a@east", Version: 5, Position: 102, Event: catalog.PriceSet{Deployment: "a@east"}})
	if _, ok := state.Snapshot().Deployment("a@east"); ok {
		t.Error("a price brought a removed deployment back")
	}
	state.Fold(catalog.Recorded{Stream: "deployment/a@east", Version: 6, Position: 103, Event: catalog.DeploymentDefined{
		Deployment: catalog.Deployment{ID: "a@east", Provider: "east", UpstreamModel: "a-9"},
	}})
	if d, _ := state.Snapshot().Deployment("a@east"); d.Prices.Known() {
		t.Error("a new deployment has the prices of a removed one")
	}
	if got := state.Revision("deployment/a@east"); got != 6 {
		t.Errorf("revision %d, want 6: it counts on over a removal (C4)", got)
	}
}

// What a newer release wrote is passed over and can be seen (C15).
func TestUnknownEventIsPassedOverVisibly_C15(t *testing.T) {
	log := history(t, fixture())
	want := folded(log).Snapshot()
	state := folded(log)
	future := catalog.Unknown{Type: "moon_phase_set", Version: 1}
	state.Fold(catalog.Recorded{Stream: "tenant/acme", Version: 2, Position: 500, Event: future})
	if got := state.Snapshot(); got.ID != want.ID || got.Position != 500 {
		t.Errorf("id %s at %d, want %s at 500", got.ID, got.Position, want.ID)
	}
	if diff := cmp.Diff(map[catalog.Unknown]int64{future: 1}, state.PassedOver()); diff != "" {
		t.Errorf("passed over (-want +got):\n%s", diff)
	}
	if got := state.Revision("tenant/acme"); got != 2 {
		t.Errorf("revision %d, want 2: the next writer must not collide with the unknown event", got)
	}
}

// An organization's own chain is an override; it must not become everyone's.
func TestOverrideIsNotTheOperatorsChain(t *testing.T) {
	state := folded(history(t, fixture()))
	want := state.Snapshot().ID
	state.Fold(catalog.Recorded{Stream: "chain/acme/a", Version: 1, Position: 600, Event: catalog.ChainReplaced{Owner: "acme", Model: "a"}})
	if got := state.Snapshot().ID; got != want {
		t.Error("an override of one organization changed the operator's chain")
	}
}

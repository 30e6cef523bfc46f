package catalog_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// Events of different streams may reach a reader in any order that keeps each
// stream's own: the catalog, and so its id, is the same (C1).
func TestOrderOfIndependentStreamsDoesNotMatter_C1(t *testing.T) {
	second := fixture()
	second.Deployments[0].Prices.Input = rate("9")
	second.Models[0].Chain = second.Models[0].Chain[:2]
	second.Models[0].Equivalence = nil
	second.Tenants = second.Tenants[:1]
	second.Classes = nil
	log := history(t, fixture(), second)
	want := folded(log).Snapshot()

	rapid.Check(t, func(rt *rapid.T) {
		byStream := map[string][]catalog.Recorded{}
		var turns []string
		for _, rec := range log {
			byStream[rec.Stream] = append(byStream[rec.Stream], rec)
			turns = append(turns, rec.Stream)
		}
		state := catalog.NewState()
		for _, stream := range rapid.Permutation(turns).Draw(rt, "turns") {
			state.Fold(byStream[stream][0])
			byStream[stream] = byStream[stream][1:]
		}
		got := state.Snapshot()
		if got.ID != want.ID {
			rt.Fatalf("another id for the same events: %s", cmp.Diff(want.Objects(), got.Objects()))
		}
		if got.Position != want.Position {
			rt.Fatalf("position %d, want %d", got.Position, want.Position)
		}
	})
}

// What means the same has the same id, however it was written; what does not, has
// another.
//
// Rules: C1.
func TestSnapshotIDFollowsMeaning_C1(t *testing.T) {
	base := snapshotOf(t, fixture()).ID
	for name, test := range map[string]struct {
		edit func(*catalog.Objects)
		same bool
	}{
		"3.00 is 3":     {func(o *catalog.Objects) { o.Deployments[0].Prices.Input = rate("3") }, true},
		"3.000e0 is 3":  {func(o *catalog.Objects) { o.Deployments[0].Prices.Input = rate("3000e-3") }, true},
		"15 is 1.5e1":   {func(o *catalog.Objects) { o.Deployments[0].Prices.Output = rate("1.5e1") }, true},
		"500.00 is 500": {func(o *catalog.Objects) { o.Tenants[0].Budgets[0].LimitUSD = "500" }, true},
		"capabilities are a set": {func(o *catalog.Objects) {
			o.Deployments[0].Capabilities = []catalog.Capability{catalog.Chat, catalog.Tools}
		}, true},
		"order of objects":     {func(o *catalog.Objects) { o.Providers[0], o.Providers[1] = o.Providers[1], o.Providers[0] }, true},
		"another price":        {func(o *catalog.Objects) { o.Deployments[0].Prices.Input = rate("3.01") }, false},
		"no price is not zero": {func(o *catalog.Objects) { o.Deployments[0].Prices.CacheRead = rate("0") }, false},
		"order of a chain": {func(o *catalog.Objects) {
			c := o.Models[0].Chain
			c[0], c[2] = c[2], c[0]
		}, false},
		"order of provider keys": {func(o *catalog.Objects) {
			k := o.Providers[0].Keys
			k[0], k[1] = k[1], k[0]
		}, false},
		"another budget": {func(o *catalog.Objects) { o.Tenants[0].Budgets[0].LimitUSD = "500.01" }, false},
		"an alias":       {func(o *catalog.Objects) { o.Tenants[0].Aliases[0].Name = "slow" }, false},
		"a tenant less":  {func(o *catalog.Objects) { o.Tenants = o.Tenants[:1] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := fixture()
			test.edit(&o)
			if got := snapshotOf(t, o).ID == base; got != test.same {
				t.Errorf("same id: %v, want %v", got, test.same)
			}
		})
	}
}

// A key says who may ask and not what is served: it has no part in the id.
func TestKeysAreNotInTheID(t *testing.T) {
	state := folded(history(t, fixture()))
	before := state.Snapshot()
	key, _ := newKey(t, "acme")
	state.Fold(catalog.Recorded{Stream: catalog.KeyStream(key.ID), Version: 1, Position: before.Position + 1, Event: catalog.KeyCreated{Key: key}})
	after := state.Snapshot()
	if after.ID != before.ID {
		t.Error("a key changed the id of the catalog")
	}
	if after.Position != before.Position+1 {
		t.Errorf("position %d does not follow the key's event", after.Position)
	}
}

// A snapshot that was stored by format 1 keeps its id and stays readable, whatever
// today's encoder writes (C16). The files are never regenerated: a release that
// writes another format adds one.
func TestStoredSnapshotKeepsItsID_C16(t *testing.T) {
	doc, err := os.ReadFile("testdata/snapshot.format1.json")
	if err != nil {
		t.Fatal(err)
	}
	id, err := os.ReadFile("testdata/snapshot.format1.id")
	if err != nil {
		t.Fatal(err)
	}
	// White space and unknown fields would not survive a re-encoding; the stored
	// bytes hold both.
	if !strings.Contains(string(doc), "a_field_of_another_release") {
		t.Fatal("the stored snapshot lost the field that today's encoder would drop")
	}
	o, err := catalog.ReadDocument(strings.TrimSpace(string(id)), doc)
	if err != nil {
		t.Fatalf("a published snapshot is rejected: %v", err)
	}
	if diff := cmp.Diff(fixture().Canonical(), o.Canonical()); diff != "" {
		t.Errorf("read another catalog (-want +got):\n%s", diff)
	}
}

// Rules: C16.
func TestDocumentIsWhatTheIDHashes_C16(t *testing.T) {
	snap := snapshotOf(t, fixture())
	o, err := catalog.ReadDocument(snap.ID, snap.Document())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(snap.Objects(), o); diff != "" {
		t.Errorf("not the same catalog (-want +got):\n%s", diff)
	}

	changed := []byte(strings.Replace(string(snap.Document()), `"acme"`, `"acne"`, 1))
	var refused *catalog.DocumentError
	if _, err := catalog.ReadDocument(snap.ID, changed); !errors.As(err, &refused) {
		t.Errorf("a changed document is read as %s: %v", snap.ID, err)
	}
}

// Rules: C16.
func TestDocumentOfANewerFormatIsRefused_C16(t *testing.T) {
	doc := `{"format":2}`
	const id = "sha256:c0ce0a8d3e6b4a0f" // not its hash
	if _, err := catalog.ReadDocument(id, []byte(doc)); err == nil || !strings.Contains(err.Error(), "does not have the id") {
		t.Errorf("wrong id: %v", err)
	}
	if _, err := catalog.ReadDocument(catalog.DocumentID([]byte(doc)), []byte(doc)); err == nil || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("newer format: %v", err)
	}
}

// A request that was admitted keeps its generation: later events do not reach the
// snapshot it holds (N14, C12).
func TestSnapshotDoesNotChange_N14(t *testing.T) {
	state := folded(history(t, fixture()))
	held := state.Snapshot()
	before := string(held.Document())
	state.Fold(catalog.Recorded{Stream: "deployment/a@east", Version: 3, Position: 900, Event: catalog.PriceSet{Deployment: "a@east"}})
	state.Fold(catalog.Recorded{Stream: "chain/operator/a", Version: 2, Position: 901, Event: catalog.ChainReplaced{Owner: catalog.OperatorChain, Model: "a"}})
	state.Fold(catalog.Recorded{Stream: "tenant/acme", Version: 2, Position: 902, Event: catalog.TenantRemoved{Tenant: "acme"}})
	if string(held.Document()) != before {
		t.Error("a snapshot in use was changed by later events")
	}
	if plan, err := held.Resolve(catalog.Ask{Tenant: "acme", Name: "a"}); err != nil || len(plan.Stages) == 0 {
		t.Errorf("the held snapshot no longer resolves: %v", err)
	}
	if state.Snapshot().ID == held.ID {
		t.Error("the new snapshot has the id of the old one")
	}
}

func TestModelsAreSortedAndPerTenant(t *testing.T) {
	snap := snapshotOf(t, fixture())
	models := snap.Models("acme")
	if len(models) != 2 || models[0].Slug != "a" || models[1].Slug != "b" || !models[0].Since.Equal(testTime) {
		t.Errorf("models = %+v", models)
	}
	if got := snap.Models("nobody"); got != nil {
		t.Errorf("an unknown tenant sees %+v", got)
	}
}

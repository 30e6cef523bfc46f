package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// withConnection is the fixture with acme's own key for provider east, and a chain of
// its own for model b.
func withConnection(chain ...catalog.Rung) catalog.Objects {
	o := withOverride(chain...)
	o.Tenants[0].Connections = []catalog.Connection{{ID: "own", Provider: "east", Stored: true}}
	return o
}

// A connection's rung is the operator's deployment of the model on the connection's
// provider, called with the connection's credential and no other; its stage holds
// nothing that is paid on the operator's account.
//
// Rules: W6, M11, N16, N19.
func TestConnectionRungIsADeploymentWithAnotherKey_W6_M11(t *testing.T) {
	o := withConnection(catalog.Rung{Connection: "own"}, catalog.Rung{Deployment: "b@east"}, catalog.Rung{Model: "a"})
	if problems := catalog.Validate(o); len(problems) > 0 {
		t.Fatalf("%+v", problems)
	}
	plan, err := snapshotOf(t, o).Resolve(catalog.Ask{Tenant: "acme", Name: "b"})
	if err != nil || len(plan.Stages) < 3 {
		t.Fatalf("%+v, %v", plan, err)
	}
	own, paid := plan.Stages[0].Rungs[0], plan.Stages[1].Rungs[0]
	if len(plan.Stages[0].Rungs) != 1 || paid.Rung.Deployment != "b@east" {
		t.Errorf("a paid rung stands in the stage of its own: %+v", plan.Stages)
	}
	if own.Deployment == nil || own.Deployment.ID != "b@east" || len(own.Provider.Keys) != 1 {
		t.Fatalf("%+v", own)
	}
	if key := own.Provider.Keys[0]; key.ID != "acme/own" || !key.Stored || own.Provider.BaseURL != paid.Provider.BaseURL {
		t.Errorf("called with %+v at %s", key, own.Provider.BaseURL)
	}
	if len(paid.Provider.Keys) != 2 {
		t.Errorf("the operator's pool became %+v", paid.Provider.Keys)
	}
	if of := own.Provider.CredentialOf("acme/own"); of != (catalog.CredentialOf{Tenant: "acme", Key: "own"}) {
		t.Errorf("its credential is %+v", of)
	}
	if !plan.Stages[0].Override || plan.Stages[0].Referred || !plan.Stages[2].Referred {
		t.Errorf("stages %+v", plan.Stages)
	}
}

// Where the operator's chain has no deployment of the model on that provider, or the
// provider is gone, the rung is unresolved and nothing else is called for it.
//
// Rules: N7, C6.
func TestConnectionThatLeadsNowhereIsUnresolved_C6(t *testing.T) {
	o := withConnection(catalog.Rung{Connection: "own"})
	o.Models[1].Chain = []catalog.Rung{{Deployment: "b@west"}}
	if got := served(t, o, "acme", "b"); !strings.Contains(got, catalog.SkipUnresolved) || strings.Contains(got, "@") {
		t.Errorf("no deployment there: %q", got)
	}
	state, rungs := catalog.JudgeChain(o, "acme", "b", o.Tenants[0].Chains[0].Chain, catalog.At{Holds: held})
	if state != catalog.UnavailableChain || rungs[0].Unusable != catalog.SkipUnresolved {
		t.Errorf("%s, %+v", state, rungs)
	}
}

func held(*catalog.Provider, string) bool { return true }

// Rules: C5, C6.
func TestConnectionWithoutCredentialIsUnavailable_C5_C6(t *testing.T) {
	o := withConnection(catalog.Rung{Connection: "own"}, catalog.Rung{Model: "a"})
	chain := o.Tenants[0].Chains[0].Chain
	operators := func(_ *catalog.Provider, key string) bool { return key != "acme/own" }
	if state, rungs := catalog.JudgeChain(o, "acme", "b", chain, catalog.At{Holds: operators}); state != catalog.UnavailableChain || rungs[0].Unusable != "credential_missing" {
		t.Errorf("%s, %+v", state, rungs)
	}
	if state, _ := catalog.JudgeChain(o, "acme", "b", chain, catalog.At{Holds: held}); state != catalog.AvailableChain {
		t.Errorf("with its credential: %s", state)
	}
}

// Rules: N16, C14.
func TestConnectionsAreValidated_N16_C14(t *testing.T) {
	own := catalog.Rung{Connection: "own"}
	for _, c := range []struct {
		path, says string
		change     func(o *catalog.Objects)
	}{
		{"tenants[0].connections[0].provider", "does not exist", func(o *catalog.Objects) { o.Tenants[0].Connections[0].Provider = "gone" }},
		{"tenants[0].connections[0].id", "may hold only", func(o *catalog.Objects) { o.Tenants[0].Connections[0].ID = "a/b" }},
		{"tenants[0].connections[1].id", "twice", func(o *catalog.Objects) {
			o.Tenants[0].Connections = append(o.Tenants[0].Connections, o.Tenants[0].Connections[0])
		}},
		{"tenants[0].connections[0]", "one or the other", func(o *catalog.Objects) { o.Tenants[0].Connections[0].Env = "OWN" }},
		{"tenants[0].connections[0]", "nowhere where the secret is", func(o *catalog.Objects) { o.Tenants[0].Connections[0].Stored = false }},
		{"tenants[0].connections[0].env", "a secret never stands", func(o *catalog.Objects) {
			o.Tenants[0].Connections[0] = catalog.Connection{ID: "own", Provider: "east", Env: "sk-secret"}
		}},
		{"tenants[0].chains[0].chain[1].connection", "twice", func(o *catalog.Objects) { o.Tenants[0].Chains[0].Chain = []catalog.Rung{own, own} }},
		{"tenants[0].chains[0].chain[0].connection", "does not exist", func(o *catalog.Objects) { o.Tenants[0].Connections = nil }},
		{"tenants[1].chains[0].chain[0].connection", "does not exist", func(o *catalog.Objects) {
			o.Tenants[1].Chains = o.Tenants[0].Chains // another's connection
		}},
		{"models[1].chain[0].connection", "only an organization's own chain", func(o *catalog.Objects) { o.Models[1].Chain[0] = own }},
	} {
		o := withConnection(own)
		c.change(&o)
		problems := catalog.Validate(o)
		if !slices.ContainsFunc(problems, func(p catalog.Problem) bool { return p.Path == c.path && strings.Contains(p.Reason, c.says) }) {
			t.Errorf("no problem at %s with %q among %+v", c.path, c.says, problems)
		}
	}
}

// What is held is known until it is deleted or what it opens is removed: a provider or
// a connection that is made again begins without one.
//
// Rules: Z2, C1.
func TestCredentialGoesWithWhatItOpens_Z2(t *testing.T) {
	provider := catalog.CredentialOf{Provider: "east", Key: "k1"}
	connection := catalog.CredentialOf{Tenant: "acme", Key: "own"}
	for of, removal := range map[catalog.CredentialOf][]any{
		provider:   {catalog.CredentialDeleted{CredentialOf: provider}, catalog.ProviderRemoved{Provider: "east"}},
		connection: {catalog.CredentialDeleted{CredentialOf: connection}, catalog.ConnectionRemoved{Tenant: "acme", Connection: "own"}},
	} {
		for _, gone := range removal {
			state := folded(history(t, withConnection(catalog.Rung{Connection: "own"})))
			id, revision := state.Snapshot().ID, state.Revision(of.Stream())
			fold := func(e any) {
				revision++
				state.Fold(catalog.Recorded{Stream: of.Stream(), Version: revision, Position: state.Position() + 1, Event: e})
			}
			stored := catalog.StoredCredential{CredentialOf: of, ID: uuid.New(), LastFour: "abcd"}
			fold(catalog.CredentialStored{StoredCredential: stored})
			snap := state.Snapshot()
			if got, ok := snap.Credential(of); !ok || got != stored || len(state.Credentials()) != 1 {
				t.Errorf("%s: held %+v, %t", of, got, ok)
			}
			if snap.ID != id {
				t.Errorf("%s: a credential changed what names resolve to", of)
			}
			fold(gone)
			if _, ok := state.Snapshot().Credential(of); ok || len(state.Credentials()) != 0 {
				t.Errorf("%s: held after %T", of, gone)
			}
			if _, ok := snap.Credential(of); !ok {
				t.Error("a snapshot in use has changed")
			}
		}
	}
}

package adminapi_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/config/configtest"
	"github.com/sluice-gateway/sluice/adapters/http/adminapi/adminapitest"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

// Whatever is edited, one object after another, the catalog always holds together,
// a refused edit writes nothing, and its export applied to an empty log gives the
// same snapshot (C2, C13).
func TestEditsExportAndApply_C2_C13(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, err := adminapitest.Start()
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		if err := s.Apply(base); err != nil {
			rt.Fatal(err)
		}
		accepted := 0
		for range rapid.IntRange(5, 25).Draw(rt, "edits") {
			if edited(rt, s) {
				accepted++
			}
			if problems := catalog.Validate(s.Catalog.Current().Objects()); len(problems) > 0 {
				rt.Fatalf("the catalog does not hold together: %+v", problems)
			}
		}
		rt.Logf("%d edits accepted", accepted)

		state := readState(rt, s.Log)
		text := config.Export(state)
		file, err := config.Load(bytes.NewReader(text), "export.yaml")
		if err != nil {
			rt.Fatalf("the export is refused: %v\n%s", err, text)
		}
		empty := configtest.NewLog()
		if err := config.Apply(context.Background(), empty, config.Diff(catalog.NewState(), file.Objects), eventstore.Meta{}, time.Now()); err != nil {
			rt.Fatal(err)
		}
		again := readState(rt, empty)
		if got, want := again.Snapshot().ID, state.Snapshot().ID; got != want {
			rt.Fatalf("snapshot %s, want %s:\n%s", got, want, cmp.Diff(state.Objects(), again.Objects()))
		}
		if s.Catalog.Current().ID != state.Snapshot().ID {
			rt.Fatal("the worker serves something else than the log says")
		}
	})
}

func readState(t *rapid.T, log *configtest.Log) *catalog.State {
	state, err := live.Read(context.Background(), log)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// edited makes one edit, at the revision that a read tells, and reports whether it
// was accepted.
func edited(t *rapid.T, s *adminapitest.Server) bool {
	ask := drawEdit(t)
	read, err := s.Do(adminapitest.Ask{Method: "GET", Path: ask.Path})
	if err != nil {
		t.Fatal(err)
	}
	if ask.IfMatch = read.ETag; rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
		ask.IfMatch = `"99"`
	}
	events := len(s.Log.Events)
	a, err := s.Do(ask)
	switch {
	case err != nil || a.Status >= 500:
		t.Fatalf("%+v: %d %s %v", ask, a.Status, a.Body, err)
	case a.Status >= 400 && len(s.Log.Events) != events:
		t.Fatalf("%+v was refused and written: %s", ask, a.Body)
	case ask.IfMatch == `"99"` && a.Status < 300:
		t.Fatalf("%+v was accepted", ask)
	}
	return a.Status < 300
}

// drawEdit draws edits of few objects, so that they meet; many of them are valid.
func drawEdit(t *rapid.T) adminapitest.Ask {
	pick := func(of ...string) string { return rapid.SampledFrom(of).Draw(t, "pick") }
	deployment := func() string { return fmt.Sprintf(`{"deployment":%q}`, pick("a@east", "a@west", "b@west", "b@east")) }
	chain := func() string {
		text := deployment()
		if rapid.Bool().Draw(t, "refers") {
			text += fmt.Sprintf(`,{"model":%q}`, pick("lab/a", "b", "c"))
		}
		if rapid.Bool().Draw(t, "more") {
			text += "," + deployment()
		}
		return `{"chain":[` + text + `]}`
	}
	names := func() string {
		return fmt.Sprintf(`{"chain":[%q,%q]}`, pick("lab/a", "b", "fast"), pick("lab/a", "b", "nobody"))
	}
	put := func(path, body string) adminapitest.Ask {
		return adminapitest.Ask{Method: "PUT", Path: path, Body: body}
	}
	tenant := "/tenants/" + pick("acme", "other")
	edits := []adminapitest.Ask{
		put("/models/"+pick("lab%2Fa", "b")+"/chain", chain()),
		put(tenant+"/chains/"+pick("lab%2Fa", "b"), pick(`[]`, chain(), chain())),
		put(tenant+"/chains/"+pick("lab%2Fa", "b"), `{"chain":[{"connection":"own"},`+deployment()+`]}`),
		put(tenant+"/connections/own", fmt.Sprintf(`{"provider":%q,"env":"OWN_KEY"}`, pick("east", "west", "north"))),
		put("/models/b/policy", fmt.Sprintf(`{"max_attempts":%s,"same_model_only":%s}`, pick("2", "65"), pick("true", "false"))),
		put("/providers/north", fmt.Sprintf(`{"protocol":"openai","base_url":%q,"keys":[{"id":"k1","env":"NORTH"}]}`, pick("https://north.example.test/v1", "north"))),
		put("/deployments/b@east", fmt.Sprintf(`{"provider":%q,"upstream_model":"b","masked":true}`, pick("east", "west"))),
		put("/deployments/"+pick("a@east", "b@west")+"/prices", fmt.Sprintf(`{"input":%q,"output":"3.10"}`, pick("0.5", "2", "02.50"))),
		put("/models/c", fmt.Sprintf(`{"exact_model":"b","chain":[%s]}`, deployment())),
		put("/classes/"+pick("vision", "assistant")+"/chain", names()),
		put(tenant, fmt.Sprintf(`{"tier":%q}`, pick("gold", "standard", "silver"))),
		put("/tiers/"+pick("gold", "silver"), fmt.Sprintf(`{"weight":%s}`, pick("2", "0.5"))),
		put(tenant+"/aliases/"+pick("fast", "x%2Fy"), fmt.Sprintf(`{"cost_tier":%q}`, pick("cheapest", "best"))),
		put(tenant+"/routing-rules/best", names()),
		put(tenant+"/promotions/"+pick("launch", "more"), fmt.Sprintf(
			`{"models":[%q],"starts":%q,"free_input_tokens":{"overall":{%q:%d}}}`,
			pick("lab/a", "b", "c"), pick("2026-11-01", "2026-12-01"), pick("per_day", "total"), rapid.IntRange(-1, 5).Draw(t, "tokens"),
		)),
		put(tenant+"/budgets/organization/usd/day", fmt.Sprintf(`{"scope":"organization","limit_usd":%q,"per":"day"}`, pick("5.00", "7"))),
	}
	ask := rapid.SampledFrom(edits).Draw(t, "edit")
	switch rapid.IntRange(0, 9).Draw(t, "method") {
	case 0, 1:
		ask.Method, ask.Body = "DELETE", ""
	case 2:
		ask = adminapitest.Ask{Method: "PATCH", Path: "/models/lab%2Fa", Body: pick(
			`{"equivalence":null}`, `{"policy":{"max_attempts":5}}`, `{"policy":null}`,
			`{"equivalence":{"certified_by":"ada","on":"2026-11-02","evidence":"sha256:01"}}`,
		)}
	}
	return ask
}

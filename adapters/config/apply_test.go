package config_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/config/configtest"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

var operator = eventstore.Meta{Actor: "operator:ada", Worker: "cli"}

func mustLoad(t testing.TB, text string) catalog.Objects {
	t.Helper()
	file, err := load(text)
	if err != nil {
		t.Fatal(err)
	}
	return file.Objects
}

func read(t testing.TB, log config.Log) *catalog.State {
	t.Helper()
	state, err := live.Read(context.Background(), log)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// apply does what `sluice apply` does and returns the plan.
func apply(t testing.TB, log config.Log, want catalog.Objects) config.Plan {
	t.Helper()
	plan := config.Diff(read(t, log), want)
	if err := config.Apply(context.Background(), log, plan, operator, testTime); err != nil {
		t.Fatal(err)
	}
	return plan
}

func printed(t testing.TB, plan config.Plan) string {
	t.Helper()
	var b bytes.Buffer
	if err := plan.Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The same file a second time changes nothing and writes nothing (C13).
func TestApplyIsIdempotent_C13(t *testing.T) {
	text, err := os.ReadFile("testdata/whole.yaml")
	if err != nil {
		t.Fatal(err)
	}
	log := configtest.NewLog()
	if plan := apply(t, log, mustLoad(t, string(text))); plan.Empty() {
		t.Fatal("nothing was planned")
	}
	events, id := len(log.Events), read(t, log).Snapshot().ID
	plan := apply(t, log, mustLoad(t, string(text)))
	if !plan.Empty() || len(log.Events) != events {
		t.Errorf("the second time planned\n%s", printed(t, plan))
	}
	if got := printed(t, plan); got != "nothing to change\n" {
		t.Errorf("says %q", got)
	}
	if read(t, log).Snapshot().ID != id {
		t.Error("another snapshot")
	}
}

// One apply is one append: a reader sees all of it or none (C2), and every event
// says who wrote it (E12).
func TestApplyIsOneAppend_C2_E12(t *testing.T) {
	log := configtest.NewLog()
	apply(t, log, mustLoad(t, good))
	if log.Appends != 1 {
		t.Errorf("%d appends", log.Appends)
	}
	for _, e := range log.Events {
		if e.Meta.Actor != "operator:ada" || !e.At.Equal(testTime) || e.Shard != live.Shard {
			t.Errorf("event %+v", e)
		}
	}
}

// The plan shows each object with its fields before and after (C13).
func TestPlanIsReadable_C13(t *testing.T) {
	log := configtest.NewLog()
	want := "" +
		"+ provider p\n    + base_url: http://127.0.0.1:9000/v1\n    + id: p\n    + keys[0].env: P_KEY\n    + keys[0].id: k\n    + protocol: openai\n" +
		"+ deployment d\n    + id: d\n    + prices.input: 1\n    + prices.output: 2\n    + provider: p\n    + upstream_model: m\n" +
		"+ model m\n    + exact_model: m\n    + slug: m\n" +
		"+ chain m\n    + chain[0].deployment: d\n" +
		"+ tenant acme\n    + id: acme\n" +
		"+ budget acme/organization/usd/month\n    + limit_usd: 5\n    + per: month\n    + scope: organization\n" +
		"6 to create, 0 to change, 0 to remove\n"
	if diff := cmp.Diff(want, printed(t, apply(t, log, mustLoad(t, good)))); diff != "" {
		t.Errorf("first plan (-want +got):\n%s", diff)
	}

	edited := strings.NewReplacer(`output: "2"`, `output: "2.50", cache_read: "0.1"`, "per: month", "per: day").Replace(good)
	want = "" +
		"~ deployment d\n    - prices.output: 2\n    + prices.cache_read: 0.1\n    + prices.output: 2.5\n" +
		"+ budget acme/organization/usd/day\n    + limit_usd: 5\n    + per: day\n    + scope: organization\n" +
		"- budget acme/organization/usd/month\n    - limit_usd: 5\n    - per: month\n    - scope: organization\n" +
		"1 to create, 1 to change, 1 to remove\n"
	if diff := cmp.Diff(want, printed(t, config.Diff(read(t, log), mustLoad(t, edited)))); diff != "" {
		t.Errorf("second plan (-want +got):\n%s", diff)
	}
}

// A plan that was overtaken writes nothing and says so (C3).
func TestStalePlanIsRefused_C3(t *testing.T) {
	log := configtest.NewLog()
	apply(t, log, mustLoad(t, good))
	plan := config.Diff(read(t, log), mustLoad(t, strings.Replace(good, `"1.00"`, `"7"`, 1)+"  - id: beta\n"))
	apply(t, log, mustLoad(t, strings.Replace(good, `"1.00"`, `"8"`, 1)))

	events := len(log.Events)
	err := config.Apply(context.Background(), log, plan, operator, testTime)
	var stale *config.StaleError
	if !errors.As(err, &stale) || stale.Stream != "deployment/d" {
		t.Errorf("error %v", err)
	}
	if len(log.Events) != events {
		t.Error("a stale plan was applied in part")
	}
}

// Keys live outside the file: no file removes one (C13), and one is made only for
// an organization that exists.
func TestKeysSurviveAFile_C13(t *testing.T) {
	log := configtest.NewLog()
	request := config.KeyRequest{Tenant: "acme"}
	ctx := context.Background()
	_, _, err := config.CreateKey(ctx, log, request, zeros{}, operator, testTime)
	var unknown *config.UnknownError
	if !errors.As(err, &unknown) || unknown.Kind != "tenant" || len(log.Events) != 0 {
		t.Fatalf("a key for nobody: %v", err)
	}

	apply(t, log, mustLoad(t, good))
	key, plaintext, err := config.CreateKey(ctx, log, request, zeros{}, operator, testTime)
	if err != nil {
		t.Fatal(err)
	}
	if plan := apply(t, log, mustLoad(t, good)); !plan.Empty() {
		t.Errorf("a key made the file differ:\n%s", printed(t, plan))
	}
	if found, ok := read(t, log).Snapshot().KeyByHash(catalog.HashKey(plaintext)); !ok || found.ID != key.ID {
		t.Error("the key is gone")
	}
	if bytes.Contains(config.Export(read(t, log)), []byte(key.Hash)) {
		t.Error("the export holds a key")
	}
	apply(t, log, catalog.Objects{})
	if _, ok := read(t, log).Snapshot().Tenant("acme"); ok {
		t.Error("the tenant is still there")
	}
	apply(t, log, mustLoad(t, good))
	if found, ok := read(t, log).Snapshot().KeyByHash(catalog.HashKey(plaintext)); !ok || found.ID != key.ID {
		t.Error("a tenant that was removed and written again has lost its keys")
	}
	for _, e := range log.Events {
		if bytes.Contains(e.Data, []byte(plaintext)) {
			t.Error("the log holds a key in plain text")
		}
	}
}

// Rules: Z3.
func TestRevokeKey_Z3(t *testing.T) {
	ctx, log := context.Background(), configtest.NewLog()
	apply(t, log, mustLoad(t, good))
	key, _, err := config.CreateKey(ctx, log, config.KeyRequest{Tenant: "acme", Scopes: []catalog.Scope{catalog.ScopeRead}}, zeros{}, operator, testTime)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := config.RevokeKey(ctx, log, key.ID, operator, testTime); err != nil {
			t.Fatal(err)
		}
	}
	found, _ := read(t, log).Snapshot().KeyByHash(key.Hash)
	if found == nil || found.Usable(testTime) || found.May(catalog.ScopeInference) {
		t.Errorf("revoked key %+v", found)
	}
	if got := log.Versions[catalog.KeyStream(key.ID)]; got != 2 {
		t.Errorf("%d events for one revocation", got-1)
	}
	var unknown *config.UnknownError
	if err := config.RevokeKey(ctx, log, "none", operator, testTime); !errors.As(err, &unknown) {
		t.Errorf("an unknown key: %v", err)
	}
}

// zeros is randomness that a test can foresee.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

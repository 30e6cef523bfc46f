package config_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/config/configtest"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
)

// Any valid catalog is written by Export so that Load reads the same, and
// applying the export to an empty log gives the same snapshot id (C13).
func TestExportRoundTrips_C13(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log := configtest.NewLog()
		for range rapid.IntRange(1, 3).Draw(rt, "edits") {
			want := drawObjects(rt)
			if problems := catalog.Validate(want); len(problems) > 0 {
				rt.Fatalf("drew an invalid catalog: %+v", problems)
			}
			apply(t, log, want)
			if diff := cmp.Diff(want.Canonical(), read(t, log).Objects()); diff != "" {
				rt.Fatalf("applied something else (-want +got):\n%s", diff)
			}
		}
		state := read(t, log)
		text := config.Export(state)
		file, err := config.Load(bytes.NewReader(text), "export.yaml")
		if err != nil {
			rt.Fatalf("the export is refused: %v\n%s", err, text)
		}
		if plan := config.Diff(state, file.Objects); !plan.Empty() {
			rt.Fatalf("the export would change:\n%s\n%s", printed(t, plan), text)
		}
		fresh := configtest.NewLog()
		apply(t, fresh, file.Objects)
		if got, want := read(t, fresh).Snapshot().ID, state.Snapshot().ID; got != want {
			rt.Fatalf("applied to an empty log the export has id %s, want %s", got, want)
		}
		if again := config.Export(read(t, fresh)); !bytes.Equal(again, text) {
			rt.Fatalf("the second export differs:\n%s", cmp.Diff(string(text), string(again)))
		}
	})
}

// The shape of an export is part of the contract with people and their version
// control.
func TestExportIsStable(t *testing.T) {
	log := configtest.NewLog()
	apply(t, log, mustLoad(t, good))
	want := `version: 1
providers:
  - id: p
    protocol: openai
    base_url: http://127.0.0.1:9000/v1
    keys:
      - {id: k, env: P_KEY}
deployments:
  - id: d
    provider: p
    upstream_model: m
    prices:
      input: "1"
      output: "2"
models:
  - slug: m
    exact_model: m
    chain:
      - {deployment: d}
tenants:
  - id: acme
    budgets:
      - {scope: organization, limit_usd: "5", per: month}
`
	if diff := cmp.Diff(want, string(config.Export(read(t, log)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// drawObjects draws a valid catalog. Names are few, so that consecutive ones
// create, change and remove the same objects.
func drawObjects(t *rapid.T) catalog.Objects {
	var o catalog.Objects
	for i := range rapid.IntRange(1, 3).Draw(t, "providers") {
		o.Providers = append(o.Providers, drawProvider(t, fmt.Sprintf("p%d", i)))
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "models") {
		slug := fmt.Sprintf("lab/model-%d", i)
		m := catalog.Model{Slug: slug, ExactModel: slug, Policy: drawPolicy(t), Surcharge: drawPercent(t)}
		rungs := rapid.IntRange(1, 3).Draw(t, "rungs")
		for j := range rungs {
			d := drawDeployment(t, fmt.Sprintf("%s@%d", slug, j), rapid.SampledFrom(o.Providers).Draw(t, "provider").ID)
			o.Deployments = append(o.Deployments, d)
			m.Chain = append(m.Chain, catalog.Rung{Deployment: d.ID})
		}
		if rungs > 1 || rapid.Bool().Draw(t, "certified") {
			m.Equivalence = &catalog.Equivalence{CertifiedBy: text(t), On: "2026-11-01", Evidence: text(t)}
		}
		if i > 0 && rapid.Bool().Draw(t, "refers") {
			at := rapid.IntRange(1, len(m.Chain)).Draw(t, "at")
			reference := catalog.Rung{Model: fmt.Sprintf("lab/model-%d", rapid.IntRange(0, i-1).Draw(t, "to"))}
			m.Chain = append(m.Chain[:at:at], append([]catalog.Rung{reference}, m.Chain[at:]...)...)
		}
		o.Models = append(o.Models, m)
	}
	if rapid.Bool().Draw(t, "class") {
		o.Classes = []catalog.Class{{Name: "vision", Chain: drawNames(t)}}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "tiers") {
		o.Tiers = append(o.Tiers, catalog.Tier{Name: fmt.Sprintf("tier-%d", i), Weight: float64(rapid.IntRange(1, 4000).Draw(t, "weight")) / 4})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "tenants") {
		tenant := drawTenant(t, fmt.Sprintf("tenant-%d", i))
		if len(o.Tiers) > 0 {
			tenant.Tier = rapid.SampledFrom([]string{"", catalog.DefaultTier, o.Tiers[0].Name}).Draw(t, "tier")
			tenant.SystemTier = rapid.SampledFrom([]string{"", o.Tiers[0].Name}).Draw(t, "system tier")
		}
		drawOwn(t, &tenant, o)
		drawPromotions(t, &tenant, o)
		tenant.Webhooks = drawWebhooks(t, []catalog.WebhookEvent{catalog.HookBillClosed, catalog.HookAliasDegraded})
		o.Tenants = append(o.Tenants, tenant)
	}
	o.Webhooks = drawWebhooks(t, catalog.WebhookEvents())
	return o
}

func drawWebhooks(t *rapid.T, events []catalog.WebhookEvent) (list []catalog.Webhook) {
	for i := range rapid.IntRange(0, 2).Draw(t, "webhooks") {
		w := catalog.Webhook{
			ID: fmt.Sprintf("hook-%d", i), URL: "https://hooks.example.test/x?a=b", Disabled: rapid.Bool().Draw(t, "disabled"),
			Events: rapid.SliceOfDistinct(rapid.SampledFrom(events), func(e catalog.WebhookEvent) catalog.WebhookEvent { return e }).Draw(t, "events"),
		}
		if w.Stored = rapid.Bool().Draw(t, "stored"); !w.Stored {
			w.Env = "HOOK_SECRET"
		}
		list = append(list, w)
	}
	return list
}

func drawProvider(t *rapid.T, id string) catalog.Provider {
	p := catalog.Provider{
		ID: id, Protocol: rapid.SampledFrom([]catalog.Protocol{catalog.OpenAI, catalog.Anthropic, catalog.Bedrock}).Draw(t, "protocol"),
		KeyStrategy:    rapid.SampledFrom([]catalog.KeyStrategy{"", catalog.RoundRobin, catalog.Failover}).Draw(t, "strategy"),
		OnClientCancel: rapid.SampledFrom([]catalog.CancelMode{"", catalog.Cancel, catalog.Drain}).Draw(t, "cancel"),
	}
	if p.Protocol == catalog.Bedrock {
		p.Region = "us-east-1"
		p.Keys = []catalog.ProviderKey{{ID: "aws", EnvAccessKey: "AWS_ACCESS", EnvSecretKey: "AWS_SECRET"}}
		return p
	}
	p.BaseURL = "https://" + id + ".example.test/v1"
	for i := range rapid.IntRange(0, 3).Draw(t, "keys") {
		p.Keys = append(p.Keys, drawKey(t, i))
	}
	return p
}

func drawKey(t *rapid.T, i int) catalog.ProviderKey {
	if rapid.Bool().Draw(t, "stored") {
		return catalog.ProviderKey{ID: fmt.Sprintf("k%d", i), Stored: true}
	}
	return catalog.ProviderKey{ID: fmt.Sprintf("k%d", i), Env: fmt.Sprintf("KEY_%d", i)}
}

func drawDeployment(t *rapid.T, id, provider string) catalog.Deployment {
	d := catalog.Deployment{ID: id, Provider: provider, UpstreamModel: text(t), Masked: rapid.Bool().Draw(t, "masked")}
	if rapid.Bool().Draw(t, "context") {
		d.Context = catalog.Context{Total: 1000, MaxInput: rapid.Int64Range(0, 1000).Draw(t, "max_input"), MaxOutput: 10}
	}
	d.Capabilities = rapid.SliceOfDistinct(rapid.SampledFrom([]catalog.Capability{catalog.Chat, catalog.Tools, catalog.Images}),
		func(c catalog.Capability) catalog.Capability { return c }).Draw(t, "capabilities")
	d.Prices = money.Prices{Input: drawRate(t), Output: drawRate(t), CacheRead: drawRate(t), CacheWrite5m: drawRate(t)}
	if rapid.Bool().Draw(t, "long") {
		d.Prices.LongContext = &money.LongContext{AboveInputTokens: 200, Input: drawRate(t)}
	}
	d.Prices.Source = rapid.SampledFrom([]string{"", text(t)}).Draw(t, "source")
	if rapid.Bool().Draw(t, "dispatch") {
		d.Dispatch = &catalog.Dispatch{
			ConcurrencyBound: rapid.IntRange(0, 9).Draw(t, "bound"), FairShare: new(rapid.Bool().Draw(t, "fair")),
			HeadroomSpillBelow: new(float64(rapid.IntRange(0, 1000).Draw(t, "headroom")) / 1000), Saturation: catalog.Overflow,
		}
	}
	d.Timeouts.Connect = catalog.Duration(rapid.Int64Range(0, 3e12).Draw(t, "connect"))
	return d
}

func drawRate(t *rapid.T) *decimal.Decimal {
	if rapid.Bool().Draw(t, "unknown rate") {
		return nil
	}
	return new(decimal.New(rapid.Int64Range(0, 999_999).Draw(t, "digits"), rapid.Int32Range(-12, 0).Draw(t, "exponent")))
}

func drawPercent(t *rapid.T) *decimal.Decimal {
	if rapid.Bool().Draw(t, "no surcharge") {
		return nil
	}
	return new(decimal.New(rapid.Int64Range(0, 999_999).Draw(t, "percent digits"), rapid.Int32Range(-6, -3).Draw(t, "percent exponent")))
}

func drawPolicy(t *rapid.T) catalog.Policy {
	p := catalog.Policy{
		FailoverMode:      rapid.SampledFrom([]catalog.FailoverMode{"", catalog.MaximizeCache, catalog.MaximizeAvailability}).Draw(t, "mode"),
		LostAnswer:        rapid.SampledFrom([]catalog.LostAnswer{"", catalog.Continue, catalog.StopLost}).Draw(t, "lost"),
		FailoverOnRefusal: rapid.Bool().Draw(t, "refusal"),
		MaxAttempts:       rapid.IntRange(0, 8).Draw(t, "attempts"),
		SameModelOnly:     rapid.Bool().Draw(t, "same model"),
	}
	if rapid.Bool().Draw(t, "threshold") {
		p.ThrottleCacheThreshold = new(float64(rapid.IntRange(0, 100).Draw(t, "percent")) / 100)
	}
	if rapid.Bool().Draw(t, "redial") {
		p.ThrottleRedial = &catalog.ThrottleRedial{MaxRetries: rapid.IntRange(0, 6).Draw(t, "retries")}
	}
	if rapid.Bool().Draw(t, "circuit") {
		p.Circuit = &catalog.CircuitPolicy{FailuresToOpen: rapid.IntRange(0, 5).Draw(t, "failures")}
	}
	return p
}

func drawTenant(t *rapid.T, id string) catalog.Tenant {
	tenant := catalog.Tenant{ID: id, SurchargeFallback: rapid.Bool().Draw(t, "surcharge")}
	tenant.ReplyModel = rapid.SampledFrom([]catalog.ReplyModel{"", catalog.ReplyRequested, catalog.ReplyCanonical}).Draw(t, "reply model")
	tenant.Retention.Responses = rapid.Bool().Draw(t, "retention")
	if rapid.Bool().Draw(t, "alias") {
		tenant.Aliases = []catalog.Alias{{Name: "fast", ProviderPreference: []string{"z", "a"}, CostTier: catalog.Best}}
	}
	if rapid.Bool().Draw(t, "rule") {
		tenant.RoutingRules = []catalog.RoutingRule{{Match: "best", Chain: drawNames(t)}}
	}
	for _, per := range []catalog.Period{catalog.PerDay, catalog.PerMonth, catalog.Total} {
		b := catalog.Budget{Scope: "organization", Per: per}
		switch rapid.IntRange(0, 3).Draw(t, "budget") {
		case 0:
			continue
		case 1:
			b.LimitUSD = decimal.New(rapid.Int64Range(1, 1e9).Draw(t, "cents"), -2).StringFixed(2)
		case 2:
			b.Requests = rapid.Int64Range(1, 1e6).Draw(t, "requests")
		case 3:
			b.Tokens = rapid.Int64Range(1, 1e9).Draw(t, "tokens")
		}
		tenant.Budgets = append(tenant.Budgets, b)
	}
	return tenant
}

// drawOwn gives a tenant connections, and chains of its own that name them.
func drawOwn(t *rapid.T, tenant *catalog.Tenant, o catalog.Objects) {
	for i := range rapid.IntRange(0, 2).Draw(t, "connections") {
		c := catalog.Connection{ID: fmt.Sprintf("own-%d", i), Provider: rapid.SampledFrom(o.Providers).Draw(t, "of").ID}
		if c.Stored = rapid.Bool().Draw(t, "stored"); !c.Stored {
			c.Env = "OWN_KEY"
		}
		tenant.Connections = append(tenant.Connections, c)
	}
	for _, m := range o.Models {
		var chain []catalog.Rung
		for _, c := range tenant.Connections {
			if rapid.Bool().Draw(t, "named") {
				chain = append(chain, catalog.Rung{Connection: c.ID})
			}
		}
		if len(chain) > 0 {
			tenant.Chains = append(tenant.Chains, catalog.TenantChain{Model: m.Slug, Chain: append(chain, m.Chain...)})
		}
	}
}

// drawPromotions gives a tenant promotions of one month each, so that no two run at
// once.
func drawPromotions(t *rapid.T, tenant *catalog.Tenant, o catalog.Objects) {
	if len(o.Models) == 0 {
		return
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "promotions") {
		p := catalog.Promotion{
			ID: fmt.Sprintf("promo-%d", i), Models: []string{rapid.SampledFrom(o.Models).Draw(t, "promoted").Slug},
			Starts:          rapid.SampledFrom([]string{fmt.Sprintf("2026-0%d-01", i+1), fmt.Sprintf("2026-0%d-01T02:00:00+02:00", i+1)}).Draw(t, "starts"),
			Ends:            fmt.Sprintf("2026-0%d-01", i+2),
			FreeInputTokens: &catalog.Allowances{PerModel: drawLimits(t)}, CachedInputFree: rapid.Bool().Draw(t, "cached"),
		}
		if rapid.Bool().Draw(t, "output") {
			p.FreeOutputTokens = &catalog.Allowances{Overall: drawLimits(t)}
		}
		tenant.Promotions = append(tenant.Promotions, p)
	}
}

func drawLimits(t *rapid.T) *catalog.AllowanceLimits {
	l := &catalog.AllowanceLimits{PerHour: rapid.Int64Range(1, 1e6).Draw(t, "hour")}
	if rapid.Bool().Draw(t, "money") {
		l.PerDayUSD = decimal.New(rapid.Int64Range(1, 1e6).Draw(t, "cents"), -2).StringFixed(2)
	} else {
		l.PerDay = rapid.Int64Range(1, 1e6).Draw(t, "day")
	}
	return l
}

func drawNames(t *rapid.T) []string {
	names := []string{"lab/model-0", "nobody", "lab/model-1", "somebody", "007"}
	return names[:rapid.IntRange(1, len(names)).Draw(t, "names")]
}

// text draws what people write, with what YAML and JSON may trip over.
func text(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		"m", "true", "null", "~", "1e3", "0x10", "2026-11-01", "a: b", "- a", "# a", "'", `"`, `\`, "{", "&a", "*a", "!a", "<a&b>",
		"über", "日本", "a  b", "on", "@", "%", "`", "=", "🌊",
	}).Draw(t, "text")
}

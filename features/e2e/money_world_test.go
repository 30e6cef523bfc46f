package e2e_test

import (
	"fmt"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// moneyLimit is a limit as the drill configures it, so that what is compared does not
// come from the code that enforces it.
type moneyLimit struct {
	scope, per, unit string
	// size is in nano-USD, requests or tokens.
	size    int64
	observe bool
}

// yaml is the limit in the configuration.
func (l moneyLimit) yaml() string {
	field, value := l.unit, fmt.Sprint(l.size)
	if l.unit == "usd" {
		field, value = "limit_usd", fmt.Sprintf("%q", fmt.Sprintf("%d.%09d", l.size/1e9, l.size%1e9))
	}
	enforcement := "enforce"
	if l.observe {
		enforcement = "observe"
	}
	return fmt.Sprintf("{scope: %s, %s: %s, per: %s, enforcement: %s}", l.scope, field, value, l.per, enforcement)
}

const microUSD, usd = 1_000, 1_000_000_000

// moneyLimits are every organization's. What has to run out grows with the drill.
func moneyLimits(requests int64) map[string][]moneyLimit {
	per := func(size int64) int64 { return max(size*requests/1000, 1) }
	return map[string][]moneyLimit{
		// Twelve that never refuse.
		"wide": {
			{scope: "organization", unit: "usd", size: 1000 * usd, per: "minute"},
			{scope: "organization", unit: "usd", size: 1000 * usd, per: "hour"},
			{scope: "organization", unit: "usd", size: 10_000 * usd, per: "day"},
			{scope: "organization", unit: "usd", size: 100_000 * usd, per: "month"},
			{scope: "organization", unit: "requests", size: 1_000_000, per: "minute"},
			{scope: "organization", unit: "requests", size: 10_000_000, per: "hour"},
			{scope: "organization", unit: "requests", size: 100_000_000, per: "day"},
			{scope: "organization", unit: "tokens", size: 1_000_000_000, per: "minute"},
			{scope: "organization", unit: "tokens", size: 10_000_000_000, per: "hour"},
			{scope: "organization", unit: "tokens", size: 100_000_000_000, per: "day"},
			{scope: "key", unit: "usd", size: 100_000 * usd, per: "month"},
			{scope: "model", unit: "tokens", size: 100_000_000_000, per: "month"},
		},
		// Money that runs out: in a minute, for a key, for a model, and for good.
		"tight": {
			{scope: "organization", unit: "usd", size: per(20_000 * microUSD), per: "total"},
			{scope: "organization", unit: "usd", size: 9_000 * microUSD, per: "minute"},
			{scope: "key", unit: "usd", size: per(14_000 * microUSD), per: "day"},
			{scope: "model", unit: "usd", size: per(3_000 * microUSD), per: "month"},
			{scope: "deployment", unit: "usd", size: 2_000 * microUSD, per: "minute"},
		},
		// Requests and tokens that run out.
		"busy": {
			{scope: "organization", unit: "usd", size: 1000 * usd, per: "month"},
			{scope: "organization", unit: "requests", size: 80, per: "minute"},
			{scope: "key", unit: "requests", size: per(36), per: "hour"},
			{scope: "key", unit: "requests", size: per(120), per: "day"},
			{scope: "deployment", unit: "requests", size: 8, per: "minute"},
			{scope: "model", unit: "tokens", size: 250, per: "minute"},
			{scope: "organization", unit: "tokens", size: per(2_500), per: "hour"},
			{scope: "organization", unit: "tokens", size: per(5_000), per: "day"},
		},
		// The same, but told and not enforced.
		"watched": {
			{scope: "organization", unit: "usd", size: 500 * microUSD, per: "day", observe: true},
			{scope: "organization", unit: "requests", size: 3, per: "minute", observe: true},
			{scope: "key", unit: "tokens", size: 50, per: "hour", observe: true},
			{scope: "organization", unit: "usd", size: 1000 * usd, per: "total"},
		},
		// Its own key at the first provider.
		"owner": {
			{scope: "organization", unit: "usd", size: 1000 * usd, per: "month"},
			{scope: "organization", unit: "requests", size: 40, per: "minute"},
			{scope: "organization", unit: "tokens", size: 1_000_000_000, per: "minute"},
		},
	}
}

// moneyModels are the drill's models and how often each is asked for.
var moneyModels = []struct {
	harness.Model
	weight int
	// streamOnly keeps a model to streams: a whole answer has a longer patience.
	streamOnly bool
}{
	{weight: 6, Model: harness.Model{Slug: "plain", Routes: []string{"b/plain", "a/plain"}, Prices: `cache_read: "0.30"`}},
	{weight: 4, Model: harness.Model{
		Slug: "cached", Routes: []string{"b/fake-cached:9+words:7"},
		Input: "0.437", Output: "1.913", Prices: `cache_read: "0.0519"`,
	}},
	{weight: 3, Model: harness.Model{
		Slug: "written", Routes: []string{"m/fake-written:5+cached:3+words:6"},
		Input: "2.71828", Output: "13.3", Prices: `cache_read: "0.2718", cache_write_5m: "3.3979"`,
	}},
	{weight: 4, Model: harness.Model{
		Slug: "long", Routes: []string{"b/fake-cached:4+words:8"}, Input: "0.9", Output: "3.6",
		Prices: `cache_read: "0.09", long_context: {above_input_tokens: 40, input: "1.8", output: "5.4", cache_read: "0.18"}`,
	}},
	{weight: 3, Model: harness.Model{Slug: "reasons", Routes: []string{"r/fake-reasoning:5+words:5"}, Input: "1.1", Output: "4.4"}},
	{weight: 4, Model: harness.Model{Slug: "streams", Routes: []string{"b/fake-words:12+gap:4ms"}}},
	{weight: 3, Model: harness.Model{Slug: "drained", Routes: []string{"d/fake-words:12+gap:4ms"}}},
	{weight: 6, Model: harness.Model{Slug: "rough", Routes: []string{"a/rough", "b/rougher"}, Input: "0.15", Output: "0.6"}},
	{weight: 3, Model: harness.Model{Slug: "changes", Routes: []string{"a/fake-503", "model:plain"}, Input: "5", Output: "25"}},
	{weight: 2, Model: harness.Model{
		Slug: "redials", Routes: []string{"a/redials", "b/fake-words:4"},
		Policy: `{throttle_redial: {max_retries: 2, base_delay: 10ms, max_delay: 20ms}, circuit: {failures_to_open: 1000, open_for: 1s}}`,
	}},
	{weight: 1, streamOnly: true, Model: harness.Model{
		Slug: "silent", Routes: []string{"a/fake-silence", "b/fake-words:2"}, Timeouts: `{first_byte: 150ms}`,
	}},
	{weight: 2, Model: harness.Model{Slug: "unmetered", Routes: []string{"b/unmetered"}}},
	{weight: 1, Model: harness.Model{Slug: "poor", Routes: []string{"p/fake-funding", "q/fake-401", "b/fake-words:2"}}},
}

// moneyScript is what the calls of some upstream models get in turn.
var moneyScript = fakeprovider.Script{Rules: []fakeprovider.Rule{
	{Model: "plain", Outcomes: []string{"words:3", "words:9", "ok", "words:30", "words:3+delay:10ms"}, Repeat: true},
	{Model: "rough", Outcomes: []string{
		"ok", "500", "503", "cut:0", "reset", "ok", "close", "html", "empty-body", "error:first", "429", "words:3",
		"cut:2", "cut:3:rst", "malformed:1", "empty", "502", "finish:length", "no-done", "400", "error:2", "words:5+usage:every+cut:3",
	}, Repeat: true},
	{Model: "rougher", Outcomes: []string{"ok", "words:4", "529", "cut:1", "words:6"}, Repeat: true},
	{Model: "redials", Outcomes: []string{"429", "ok", "429:0", "429", "429"}, Repeat: true},
	{Model: "unmetered", Outcomes: []string{
		"words:4+usage:absent", "words:4+usage:null", "words:4+usage:zero", "words:4+usage:cached-over-prompt", "words:4",
	}, Repeat: true},
}}

// stubborn keeps circuits out of the way: they would hide the failures that are wanted.
const stubborn = "{failover_mode: maximize_availability, circuit: {failures_to_open: 1000, open_for: 1s}}"

// ownSecret is the key of the organization that has one.
const ownSecret = "upstream-key-of-their-own"

// moneyConfig is the drill's installation. All providers are one server, so that one
// ledger has every call.
func moneyConfig(upstream string, requests int64) harness.Config {
	config := harness.Config{Providers: []harness.Provider{
		{ID: "a", URL: upstream},
		{ID: "b", URL: upstream},
		{ID: "m", URL: upstream, Protocol: "anthropic"},
		{ID: "r", URL: upstream, Protocol: "openai-responses"},
		{ID: "d", URL: upstream, OnClientCancel: "drain"},
		{ID: "p", URL: upstream},
		{ID: "q", URL: upstream},
	}}
	for _, m := range moneyModels {
		if m.Policy == "" {
			m.Policy = stubborn
		}
		config.Models = append(config.Models, m.Model)
	}
	for tenant, limits := range moneyLimits(requests) {
		one := harness.Tenant{ID: tenant}
		for _, l := range limits {
			one.Budgets = append(one.Budgets, l.yaml())
		}
		if tenant == "owner" {
			one.Connections = []harness.Connection{{ID: "own", Provider: "b", Secret: ownSecret}}
			one.Chains = []string{
				"{model: plain, chain: [{connection: own}, {deployment: plain-1@a}]}",
				"{model: long, chain: [{connection: own}, {deployment: long-0@b}]}",
			}
		}
		config.Tenants = append(config.Tenants, one)
	}
	return config
}

// prompt is some text of so many words; blanks are what no estimate expects: cheap in
// tokens and dear at a provider that counts bytes.
func prompt(words int, blanks bool) string {
	if blanks {
		return "a" + strings.Repeat(" ", 40*words) + "b"
	}
	return strings.TrimSpace(strings.Repeat("word ", words))
}

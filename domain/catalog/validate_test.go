package catalog_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
)

func TestValidCatalogHasNoProblems(t *testing.T) {
	if problems := catalog.Validate(fixture()); len(problems) > 0 {
		t.Errorf("problems: %+v", problems)
	}
}

// Every way to write a wrong object is refused at its field and with its reason.
func TestInvalidObjectsAreRefused(t *testing.T) {
	long := strings.Repeat("x", 129)
	for _, c := range []struct {
		path, reason string
		edit         func(*catalog.Objects)
	}{
		{"providers[0].id", "is missing", func(o *catalog.Objects) { o.Providers[0].ID = "" }},
		{"providers[0].id", "may hold only", func(o *catalog.Objects) { o.Providers[0].ID = "e ast" }},
		{"providers[0].id", "may hold only", func(o *catalog.Objects) { o.Providers[0].ID = "a/b" }},
		{"providers[0].id", "must begin with", func(o *catalog.Objects) { o.Providers[0].ID = "-east" }},
		{"providers[0].id", "longer than 128", func(o *catalog.Objects) { o.Providers[0].ID = long }},
		{"providers[1].id", "defined twice", func(o *catalog.Objects) { o.Providers[1].ID = "east" }},
		{"providers[0].protocol", "is missing", func(o *catalog.Objects) { o.Providers[0].Protocol = "" }},
		{"providers[0].protocol", "is none of", func(o *catalog.Objects) { o.Providers[0].Protocol = "soap" }},
		{"providers[0].base_url", "is missing", func(o *catalog.Objects) { o.Providers[0].BaseURL = "" }},
		{"providers[0].base_url", "neither http nor https", func(o *catalog.Objects) { o.Providers[0].BaseURL = "ftp://x.test/" }},
		{"providers[0].base_url", "not an absolute URL", func(o *catalog.Objects) { o.Providers[0].BaseURL = "x.test/v1" }},
		{"providers[0].base_url", "not an absolute URL", func(o *catalog.Objects) { o.Providers[0].BaseURL = "https://:80/v1" }},
		{"providers[0].base_url", "a user or a password", func(o *catalog.Objects) { o.Providers[0].BaseURL = "https://u:p@x.test" }},
		{"providers[0].base_url", "a query or a fragment", func(o *catalog.Objects) { o.Providers[0].BaseURL = "https://x.test?key=1" }},
		{"providers[0].region", "needs a region", func(o *catalog.Objects) {
			o.Providers[0] = catalog.Provider{ID: "east", Protocol: catalog.Bedrock}
		}},
		{"providers[0].key_strategy", "is none of round_robin, failover", func(o *catalog.Objects) { o.Providers[0].KeyStrategy = "random" }},
		{"providers[0].on_client_cancel", "is none of cancel, drain", func(o *catalog.Objects) { o.Providers[0].OnClientCancel = "wait" }},
		{"providers[0].keys[1].id", "defined twice", func(o *catalog.Objects) { o.Providers[0].Keys[1].ID = "k1" }},
		{"providers[0].keys[0]", "says nowhere where the secret is", func(o *catalog.Objects) { o.Providers[0].Keys[0].Env = "" }},
		{"providers[0].keys[0].env", "not the name of an environment variable", func(o *catalog.Objects) { o.Providers[0].Keys[0].Env = "sk-live-1" }},
		{"providers[0].keys[0]", "one or the other", func(o *catalog.Objects) { o.Providers[0].Keys[0].EnvAccessKey = "A" }},
		{"providers[0].keys[0]", "without env_access_key", func(o *catalog.Objects) {
			o.Providers[0].Keys[0] = catalog.ProviderKey{ID: "k", EnvSessionToken: "A"}
		}},
		{"providers[0].keys[0]", "needs both", func(o *catalog.Objects) { o.Providers[0].Keys[0] = catalog.ProviderKey{ID: "k", EnvSecretKey: "A"} }},
		{"providers[0].keys[0]", "belong to protocol bedrock", func(o *catalog.Objects) {
			o.Providers[0].Keys[0] = catalog.ProviderKey{ID: "k", EnvAccessKey: "A", EnvSecretKey: "B"}
		}},
		{"providers[0].keys", "more than 64", func(o *catalog.Objects) { o.Providers[0].Keys = make([]catalog.ProviderKey, 65) }},

		{"tiers[0].name", "is missing", func(o *catalog.Objects) { o.Tiers = []catalog.Tier{{Weight: 1}} }},
		{"tiers[1].name", "defined twice", func(o *catalog.Objects) {
			o.Tiers = []catalog.Tier{{Name: "gold", Weight: 1}, {Name: "gold", Weight: 1}}
		}},
		{"tiers[0].weight", "not above 0", func(o *catalog.Objects) { o.Tiers = []catalog.Tier{{Name: "gold", Weight: 0}} }},
		{"tiers[0].weight", "not above 0", func(o *catalog.Objects) { o.Tiers = []catalog.Tier{{Name: "gold", Weight: -1}} }},
		{"tiers[0].weight", "at most 1000", func(o *catalog.Objects) { o.Tiers = []catalog.Tier{{Name: "gold", Weight: 1001}} }},
		{"tiers[0].weight", "not above 0", func(o *catalog.Objects) { o.Tiers = []catalog.Tier{{Name: "gold", Weight: math.NaN()}} }},
		{"tenants[0].tier", `tier "iron" does not exist`, func(o *catalog.Objects) { o.Tenants[0].Tier = "iron" }},
		{"tenants[0].system_tier", `tier "iron" does not exist`, func(o *catalog.Objects) { o.Tenants[0].SystemTier = "iron" }},
		{"deployments[0].id", "may hold only", func(o *catalog.Objects) { o.Deployments[0].ID = "a?b" }},
		{"deployments[1].id", "defined twice", func(o *catalog.Objects) { o.Deployments[1].ID = "a@east" }},
		{"deployments[0].provider", `"north" does not exist`, func(o *catalog.Objects) { o.Deployments[0].Provider = "north" }},
		{"deployments[0].upstream_model", "is missing", func(o *catalog.Objects) { o.Deployments[0].UpstreamModel = " " }},
		{"deployments[0].upstream_model", "cannot be printed", func(o *catalog.Objects) { o.Deployments[0].UpstreamModel = "a\nb" }},
		{"deployments[0].upstream_model", "cannot be printed", func(o *catalog.Objects) { o.Deployments[0].UpstreamModel = "a\xff" }},
		{"deployments[0].prices.source", "cannot be printed", func(o *catalog.Objects) { o.Deployments[0].Prices.Source = "a\u2028b" }},
		{"deployments[0].context.total", "not between", func(o *catalog.Objects) { o.Deployments[0].Context.Total = -1 }},
		{"deployments[0].context.max_input", "more than the total window", func(o *catalog.Objects) {
			o.Deployments[0].Context = catalog.Context{Total: 10, MaxInput: 11}
		}},
		{"deployments[0].context.min_output", "more than max_output", func(o *catalog.Objects) {
			o.Deployments[0].Context = catalog.Context{MaxOutput: 1, MinOutput: 2}
		}},
		{"deployments[0].capabilities[0]", "is none of", func(o *catalog.Objects) { o.Deployments[0].Capabilities[0] = "fly" }},
		{"deployments[0].capabilities[0]", "is empty", func(o *catalog.Objects) { o.Deployments[0].Capabilities[0] = "" }},
		{"deployments[0].capabilities[1]", "defined twice", func(o *catalog.Objects) { o.Deployments[0].Capabilities[1] = "tools" }},
		{"deployments[0].prices.input", "negative", func(o *catalog.Objects) { o.Deployments[0].Prices.Input = rate("-1") }},
		{"deployments[0].prices.output", "digits", func(o *catalog.Objects) { o.Deployments[0].Prices.Output = rate("1000000") }},
		{"deployments[0].prices.output", "digits", func(o *catalog.Objects) { o.Deployments[0].Prices.Output = rate("0.0000000000001") }},
		{"deployments[0].prices.output", "digits", func(o *catalog.Objects) { o.Deployments[0].Prices.Output = rate("1e99") }},
		{"deployments[0].prices.cache_read", "negative", func(o *catalog.Objects) { o.Deployments[0].Prices.CacheRead = rate("-1") }},
		{"deployments[0].prices.cache_write_5m", "negative", func(o *catalog.Objects) { o.Deployments[0].Prices.CacheWrite5m = rate("-1") }},
		{"deployments[0].prices.cache_write_1h", "negative", func(o *catalog.Objects) { o.Deployments[0].Prices.CacheWrite1h = rate("-1") }},
		{"deployments[0].prices.long_context.above_input_tokens", "not between", func(o *catalog.Objects) {
			o.Deployments[0].Prices.LongContext = &money.LongContext{}
		}},
		{"deployments[0].prices.long_context.output", "negative", func(o *catalog.Objects) {
			o.Deployments[0].Prices.LongContext = &money.LongContext{AboveInputTokens: 1, Output: rate("-1")}
		}},
		{"deployments[0].timeouts.connect", "not between", func(o *catalog.Objects) { o.Deployments[0].Timeouts.Connect = -1 }},
		{"deployments[0].timeouts.first_byte", "not between", func(o *catalog.Objects) {
			o.Deployments[0].Timeouts.FirstByte = catalog.Duration(2 * time.Hour)
		}},
		{"deployments[0].timeouts.first_output", "not between", func(o *catalog.Objects) { o.Deployments[0].Timeouts.FirstOutput = -1 }},
		{"deployments[0].timeouts.stream_idle", "not between", func(o *catalog.Objects) { o.Deployments[0].Timeouts.StreamIdle = -1 }},
		{"deployments[0].dispatch.headroom_spill_below", "not between", func(o *catalog.Objects) {
			o.Deployments[0].Dispatch = &catalog.Dispatch{HeadroomSpillBelow: new(1.1)}
		}},
		{"deployments[0].dispatch.cache_priority_alpha", "not between", func(o *catalog.Objects) {
			o.Deployments[0].Dispatch = &catalog.Dispatch{CachePriorityAlpha: new(math.NaN())}
		}},
		{"deployments[0].dispatch.saturation", "is none of", func(o *catalog.Objects) {
			o.Deployments[0].Dispatch = &catalog.Dispatch{Saturation: "wait"}
		}},

		{"models[0].slug", "asks for a traffic class", func(o *catalog.Objects) { o.Models[0].Slug = "class/a" }},
		{"models[0].slug", "no empty part", func(o *catalog.Objects) { o.Models[0].Slug = "a//b" }},
		{"models[1].slug", "defined twice", func(o *catalog.Objects) { o.Models[1].Slug = "a" }},
		{"models[0].exact_model", "is missing", func(o *catalog.Objects) { o.Models[0].ExactModel = "" }},
		{"models[0].equivalence.certified_by", "is missing", func(o *catalog.Objects) { o.Models[0].Equivalence.CertifiedBy = "" }},
		{"models[0].equivalence.evidence", "is missing", func(o *catalog.Objects) { o.Models[0].Equivalence.Evidence = "" }},
		{"models[0].equivalence.on", "not a date", func(o *catalog.Objects) { o.Models[0].Equivalence.On = "yesterday" }},
		{"models[0].chain", "is empty", func(o *catalog.Objects) { o.Models[0].Chain = nil }},
		{"models[0].chain", "more than 256", func(o *catalog.Objects) { o.Models[0].Chain = make([]catalog.Rung, 257) }},
		{"models[0].chain[0].deployment", "does not exist", func(o *catalog.Objects) { o.Models[0].Chain[0].Deployment = "nowhere" }},
		{"models[0].chain[2].deployment", "twice", func(o *catalog.Objects) { o.Models[0].Chain[2].Deployment = "a@east" }},
		{"models[0].chain[1].model", "does not exist", func(o *catalog.Objects) { o.Models[0].Chain[1].Model = "nothing" }},
		{"models[0].chain[1].model", "its own model", func(o *catalog.Objects) { o.Models[0].Chain[1].Model = "a" }},
		{"models[0].chain[0].connection", "only an organization's own chain", func(o *catalog.Objects) { o.Models[0].Chain[0] = catalog.Rung{Connection: "c"} }},

		{"models[0].policy.failover_mode", "is none of", func(o *catalog.Objects) { o.Models[0].Policy.FailoverMode = "hope" }},
		{"models[0].policy.throttle_cache_threshold", "not between", func(o *catalog.Objects) {
			o.Models[0].Policy.ThrottleCacheThreshold = new(1.5)
		}},
		{"models[0].policy.throttle_redial.max_retries", "not between", func(o *catalog.Objects) {
			o.Models[0].Policy.ThrottleRedial = &catalog.ThrottleRedial{MaxRetries: 7}
		}},
		{"models[0].policy.throttle_redial", "longer than max_delay", func(o *catalog.Objects) {
			o.Models[0].Policy.ThrottleRedial = &catalog.ThrottleRedial{MaxDelay: 1}
		}},
		{"models[0].policy.lost_answer", "is none of", func(o *catalog.Objects) { o.Models[0].Policy.LostAnswer = "cry" }},
		{"models[0].policy.max_attempts", "not between", func(o *catalog.Objects) { o.Models[0].Policy.MaxAttempts = 65 }},
		{"models[0].policy.circuit.failures_to_open", "not between", func(o *catalog.Objects) {
			o.Models[0].Policy.Circuit = &catalog.CircuitPolicy{FailuresToOpen: -1}
		}},

		{"classes[0].name", "is missing", func(o *catalog.Objects) { o.Classes[0].Name = "" }},
		{"classes[0].chain", "is empty", func(o *catalog.Objects) { o.Classes[0].Chain = nil }},
		{"tenants[0].id", "may hold only", func(o *catalog.Objects) { o.Tenants[0].ID = "ac/me" }},
		{"tenants[1].id", "defined twice", func(o *catalog.Objects) { o.Tenants[1].ID = "acme" }},
		{"tenants[0].aliases[0].name", "is missing", func(o *catalog.Objects) { o.Tenants[0].Aliases[0].Name = "" }},
		{"tenants[0].aliases[0].cost_tier", "is none of", func(o *catalog.Objects) { o.Tenants[0].Aliases[0].CostTier = "free" }},
		{"tenants[0].routing_rules[0].match", "is missing", func(o *catalog.Objects) { o.Tenants[0].RoutingRules[0].Match = "" }},
		{"tenants[0].routing_rules[0].chain", "max_fallback_depth = 5", func(o *catalog.Objects) {
			o.Tenants[0].RoutingRules[0].Chain = strings.Split("a b c d e f", " ")
		}},
		{"tenants[0].routing_rules[0].chain[1]", "repeats", func(o *catalog.Objects) { o.Tenants[0].RoutingRules[0].Chain = []string{"a", "a"} }},
		{"tenants[0].budgets[0].scope", "is missing", func(o *catalog.Objects) { o.Tenants[0].Budgets[0].Scope = "" }},
		{"tenants[0].budgets[0].scope", "is none of organization", func(o *catalog.Objects) { o.Tenants[0].Budgets[0].Scope = "planet" }},
		{"tenants[0].budgets[0].of", "scopes inside an organization", func(o *catalog.Objects) { o.Tenants[0].Budgets[0].Of = "acme" }},
		{"tenants[0].budgets[0].of", "model \"gone\" does not exist", func(o *catalog.Objects) {
			o.Tenants[0].Budgets[0].Scope, o.Tenants[0].Budgets[0].Of = "model", "gone"
		}},
		{"tenants[0].budgets[0].of", "pool \"gone\" does not exist", func(o *catalog.Objects) {
			o.Tenants[0].Budgets[0].Scope, o.Tenants[0].Budgets[0].Of = "pool", "gone"
		}},
		{"tenants[0].budgets[0].of", "deployment \"gone\" does not exist", func(o *catalog.Objects) {
			o.Tenants[0].Budgets[0].Scope, o.Tenants[0].Budgets[0].Of = "deployment", "gone"
		}},
		{"tenants[0].budgets[0].soft_percent", "not between", func(o *catalog.Objects) { o.Tenants[0].Budgets[0].SoftPercent = new(101) }},
		{"tenants[0].budgets[0].enforcement", "is none of", func(o *catalog.Objects) { o.Tenants[0].Budgets[0].Enforcement = "hope" }},
		{"tenants[0].budgets[0].per", "is missing", func(o *catalog.Objects) { o.Tenants[0].Budgets[0].Per = "" }},
		{"tenants[0].budgets[0].per", "is none of", func(o *catalog.Objects) { o.Tenants[0].Budgets[0].Per = "year" }},
		{"tenants[0].budgets[0]", "has 2 limits", func(o *catalog.Objects) { o.Tenants[0].Budgets[0].Tokens = 1 }},
		{"tenants[0].budgets[0]", "has 0 limits", func(o *catalog.Objects) { o.Tenants[0].Budgets[0].LimitUSD = "" }},
		{"tenants[0].budgets[0].limit_usd", "not an amount", func(o *catalog.Objects) { o.Tenants[0].Budgets[0].LimitUSD = "much" }},
		{"tenants[0].budgets[0].limit_usd", "more than 0", func(o *catalog.Objects) { o.Tenants[0].Budgets[0].LimitUSD = "0.00" }},
		{"tenants[0].budgets[0].limit_usd", "digits", func(o *catalog.Objects) { o.Tenants[0].Budgets[0].LimitUSD = "0.0000000001" }},
		{"tenants[0].budgets[0].limit_usd", "digits", func(o *catalog.Objects) { o.Tenants[0].Budgets[0].LimitUSD = "9999999999" }},
		{"tenants[0].budgets[1].requests", "not between", func(o *catalog.Objects) { o.Tenants[0].Budgets[1].Requests = -1 }},
		{"tenants[0].budgets[2]", "defined twice", func(o *catalog.Objects) {
			o.Tenants[0].Budgets = append(o.Tenants[0].Budgets, catalog.Budget{Scope: "organization", LimitUSD: "1", Per: catalog.PerMonth})
		}},
	} {
		t.Run(c.path+" "+c.reason, func(t *testing.T) {
			o := fixture()
			c.edit(&o)
			expectProblem(t, catalog.Validate(o), c.path, c.reason)
		})
	}
}

func expectProblem(t *testing.T, problems []catalog.Problem, path, reason string) {
	t.Helper()
	for _, p := range problems {
		if p.Path == path && strings.Contains(p.Reason, reason) {
			return
		}
	}
	t.Errorf("no problem at %s with %q among %+v", path, reason, problems)
}

// A pool of several deployments is one exact model by an operator's word, and a
// deployment serves one exact model wherever it stands (N15).
func TestPoolIsOneExactModel_N15(t *testing.T) {
	o := fixture()
	o.Models[0].Equivalence = nil
	expectProblem(t, catalog.Validate(o), "models[0].equivalence", "a pool of 2 deployments")

	o = fixture()
	o.Models[0].Equivalence = nil
	o.Models[0].Chain = o.Models[0].Chain[:2] // one deployment and a reference
	if problems := catalog.Validate(o); len(problems) > 0 {
		t.Errorf("a pool of one needs no certification: %+v", problems)
	}

	o = fixture()
	o.Models[1].Chain[0].Deployment = "a@east"
	expectProblem(t, catalog.Validate(o), "models[1].chain[0].deployment", `serves exact model "a"`)
}

// One target a rung, at most one reference, and only after a direct rung (N16).
func TestChainShape_N16(t *testing.T) {
	a, b, ref := catalog.Rung{Deployment: "a@east"}, catalog.Rung{Deployment: "a@west"}, catalog.Rung{Model: "b"}
	for _, c := range []struct {
		chain        []catalog.Rung
		path, reason string
	}{
		{[]catalog.Rung{a}, "", ""},
		{[]catalog.Rung{a, ref}, "", ""},
		{[]catalog.Rung{a, ref, b}, "", ""},
		{[]catalog.Rung{ref, a}, "[0].model", "only after a deployment"},
		{[]catalog.Rung{ref}, "[0].model", "only after a deployment"},
		{[]catalog.Rung{a, ref, ref}, "[2].model", "at most one reference"},
		{[]catalog.Rung{{}}, "[0]", "names no target"},
		{[]catalog.Rung{{Deployment: "a@east", Model: "b"}}, "[0]", "names 2 targets"},
		{[]catalog.Rung{{Deployment: "a@east", Connection: "c", Model: "b"}}, "[0]", "names 3 targets"},
	} {
		t.Run(fmt.Sprint(c.chain), func(t *testing.T) {
			o := fixture()
			o.Models[0].Chain = c.chain
			problems := catalog.Validate(o)
			if c.reason == "" {
				if len(problems) > 0 {
					t.Errorf("refused: %+v", problems)
				}
				return
			}
			expectProblem(t, problems, "models[0].chain"+c.path, c.reason)
		})
	}
}

// Everything is reported at once.
func TestValidateCollects(t *testing.T) {
	o := fixture()
	o.Providers[0].Protocol = "soap"
	o.Deployments[1].Prices.Input = rate("-1")
	o.Tenants[0].Budgets[1].Per = "year"
	if problems := catalog.Validate(o); len(problems) != 3 {
		t.Errorf("problems: %+v", problems)
	}
}

// A reason never repeats what may be a secret (C14).
func TestReasonsHoldNoSecret_C14(t *testing.T) {
	const secret = "hunter2-AbCdEf"
	o := fixture()
	o.Providers[0].Keys[0].Env = secret
	o.Providers[0].BaseURL = "https://u:" + secret + "@x.test/v1"
	o.Providers[1].BaseURL = "ht tp://" + secret
	problems := catalog.Validate(o)
	if len(problems) != 3 {
		t.Errorf("problems: %+v", problems)
	}
	for _, p := range problems {
		if strings.Contains(p.Reason, secret) {
			t.Errorf("%s repeats the secret: %s", p.Path, p.Reason)
		}
	}
}

package event

import (
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/equivalence"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/usage"
)

func sampleRate(s string) *decimal.Decimal { return new(decimal.RequireFromString(s)) }

var samplePrices = money.Prices{
	Input: sampleRate("3"), Output: sampleRate("15"), CacheRead: sampleRate("0.3"),
	CacheWrite5m: sampleRate("3.75"), CacheWrite1h: sampleRate("6"),
	AudioInput: sampleRate("10"), ImageInput: sampleRate("4"), AudioOutput: sampleRate("20"), ImageOutput: sampleRate("30"),
	LongContext: &money.LongContext{
		AboveInputTokens: 200000, Input: sampleRate("6"), Output: sampleRate("22.5"), CacheRead: sampleRate("0.6"),
		CacheWrite5m: sampleRate("7.5"), CacheWrite1h: sampleRate("12"),
	},
	Source: "price page, read 2026-11-01",
}

var catalogSamples = []Event{
	catalog.ProviderDefined{Provider: catalog.Provider{
		ID: "bedrock-east", Protocol: catalog.Bedrock, BaseURL: "https://bedrock.example.test", Region: "us-east-1",
		Keys: []catalog.ProviderKey{
			{ID: "k1", Env: "BEDROCK_KEY"},
			{ID: "k2", Stored: true},
			{ID: "aws", EnvAccessKey: "AWS_ACCESS_KEY_ID", EnvSecretKey: "AWS_SECRET_ACCESS_KEY", EnvSessionToken: "AWS_SESSION_TOKEN"},
		},
		KeyStrategy: catalog.Failover, OnClientCancel: catalog.Drain,
	}},
	catalog.ProviderRemoved{Provider: "bedrock-east"},
	catalog.DeploymentDefined{Deployment: catalog.Deployment{
		ID: "fable-5@bedrock", Provider: "bedrock-east", UpstreamModel: "example.fable-5-v1:0",
		Context:      catalog.Context{Total: 1050000, MaxInput: 922000, MaxOutput: 128000, MinOutput: 16},
		Capabilities: []catalog.Capability{catalog.Chat, catalog.Tools},
		Dispatch: &catalog.Dispatch{
			ConcurrencyBound: 64, FairShare: new(true), FreshSessionSpillFraction: new(0.8), RequestsPerMinute: 600,
			TokensPerMinute: 2000000, CachePriorityAlpha: new(1.0), HeadroomSpillBelow: new(0.1), StickySpillSeconds: 900,
			Saturation: catalog.Overflow,
		},
		Timeouts: catalog.Timeouts{
			Connect: catalog.Duration(5 * time.Second), FirstByte: catalog.Duration(20 * time.Second),
			FirstOutput: catalog.Duration(5 * time.Minute), StreamIdle: catalog.Duration(time.Minute),
		},
		Masked: true,
	}},
	catalog.DeploymentRemoved{Deployment: "fable-5@bedrock"},
	catalog.PriceSet{Deployment: "fable-5@bedrock", Prices: samplePrices},
	catalog.ModelDefined{Model: "fable-5", ExactModel: "fable-5-20260601", Surcharge: &samplePercent},
	catalog.ModelRemoved{Model: "fable-5"},
	catalog.PolicyChanged{Model: "fable-5", Policy: catalog.Policy{
		FailoverMode: catalog.MaximizeAvailability, ThrottleCacheThreshold: new(0.25),
		ThrottleRedial: &catalog.ThrottleRedial{
			MaxRetries: 3, BaseDelay: catalog.Duration(500 * time.Millisecond), MaxDelay: catalog.Duration(8 * time.Second),
		},
		FailoverOnRefusal: true, LostAnswer: catalog.StopLost, MaxAttempts: 8, SameModelOnly: true,
		Circuit: &catalog.CircuitPolicy{
			FailuresToOpen: 5, Window: catalog.Duration(30 * time.Second), OpenFor: catalog.Duration(time.Minute),
		},
	}},
	catalog.EquivalenceCertified{Model: "fable-5", Equivalence: catalog.Equivalence{
		CertifiedBy: "ops", On: "2026-11-01", Evidence: "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
	}},
	catalog.EquivalenceWithdrawn{Model: "fable-5"},
	catalog.EquivalenceChecked{
		Model: "fable-5", Hash: "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef", Evidence: sampleEvidence,
	},
	catalog.ChainReplaced{Owner: catalog.OperatorChain, Model: "fable-5", Chain: []catalog.Rung{
		{Deployment: "fable-5@bedrock"}, {Connection: "own-key"}, {Model: "fable-4"},
	}},
	catalog.ClassDefined{Class: catalog.Class{Name: "assistant", Chain: []string{"fable-5", "fable-4"}}},
	catalog.ClassRemoved{Class: "assistant"},
	catalog.TierDefined{Tier: catalog.Tier{Name: "gold", Weight: 2.5}},
	catalog.TierRemoved{Tier: "gold"},
	catalog.TenantDefined{Tenant: catalog.Tenant{
		ID: "acme", Tier: "standard", SystemTier: "gold", ReplyModel: catalog.ReplyCanonical, SurchargeFallback: true, Retention: catalog.Retention{Responses: true},
	}},
	catalog.TenantRemoved{Tenant: "acme"},
	catalog.AliasDegraded{Tenant: "acme", Name: "summarise"},
	catalog.AliasDefined{Tenant: "acme", Alias: catalog.Alias{
		Name: "summarise", Pin: "fable-4", Capabilities: []catalog.Capability{catalog.Chat}, MinContextWindow: 128000,
		ProviderPreference: []string{"together", "openai"}, CostTier: catalog.Cheapest,
	}},
	catalog.AliasRemoved{Tenant: "acme", Alias: "summarise"},
	catalog.RoutingRuleDefined{Tenant: "acme", Rule: catalog.RoutingRule{Match: "best", Chain: []string{"fable-5", "fast"}}},
	catalog.RoutingRuleRemoved{Tenant: "acme", Match: "best"},
	// A real budget has one of the three limits.
	catalog.BudgetSet{Tenant: "acme", Budget: catalog.Budget{
		Scope: "model", Of: "fable-5", LimitUSD: "500", Requests: 600, Tokens: 2000000, Per: catalog.PerMonth,
		SoftPercent: new(90), Enforcement: catalog.Observe,
	}},
	catalog.BudgetRemoved{Tenant: "acme", Scope: "model", Of: "fable-5", Unit: catalog.USD, Per: catalog.PerMonth},
	catalog.KeyCreated{Key: catalog.Key{
		ID: "0193e8f0-0000-7000-8000-000000000001", Tenant: "acme",
		Hash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Prefix: "sk-sluice-a5a5a5",
		Scopes: []catalog.Scope{catalog.ScopeInference, catalog.ScopeRead}, Class: "assistant", Models: []string{"fable-5"}, ReplyModel: catalog.ReplyCanonical,
		Team: "search", Identity: "ada",
		CreatedAt: time.Date(2026, 11, 29, 10, 0, 0, 123000, time.UTC), ExpiresAt: time.Date(2027, 11, 29, 0, 0, 0, 0, time.UTC),
		RevokedAt: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
	}},
	// A real one has env or stored.
	catalog.ConnectionDefined{Tenant: "acme", Connection: catalog.Connection{ID: "own", Provider: "bedrock-east", Env: "ACME_KEY", Stored: true}},
	catalog.ConnectionRemoved{Tenant: "acme", Connection: "own"},
	// A real limit is in tokens or in money.
	catalog.PromotionDefined{Tenant: "acme", Promotion: catalog.Promotion{
		ID: "launch", Models: []string{"fable-5"}, Starts: "2026-11-01T00:00:00Z", Ends: "2026-12-01T00:00:00Z",
		FreeInputTokens: &catalog.Allowances{
			PerModel: &catalog.AllowanceLimits{PerHour: 100000, PerDay: 1000000, Total: 5000000, PerHourUSD: "1", PerDayUSD: "2", TotalUSD: "3"},
			Overall:  &catalog.AllowanceLimits{PerHour: 200000, PerDay: 2000000, Total: 9000000, PerHourUSD: "4", PerDayUSD: "5", TotalUSD: "6"},
		},
		FreeOutputTokens: &catalog.Allowances{
			PerModel: &catalog.AllowanceLimits{PerHour: 10000, PerDay: 100000, Total: 500000, PerHourUSD: "7", PerDayUSD: "8", TotalUSD: "9"},
			Overall:  &catalog.AllowanceLimits{PerHour: 20000, PerDay: 200000, Total: 900000, PerHourUSD: "1.5", PerDayUSD: "2.5", TotalUSD: "3.5"},
		},
		CachedInputFree: true,
	}},
	catalog.PromotionRemoved{Tenant: "acme", Promotion: "launch"},
	// A real one has env or stored.
	catalog.WebhookDefined{Tenant: "acme", Webhook: catalog.Webhook{
		ID: "ops", URL: "https://hooks.example.test/sluice", Events: []catalog.WebhookEvent{catalog.HookBillClosed, catalog.HookBudgetExhausted},
		Env: "ACME_HOOK_SECRET", Stored: true, Disabled: true,
	}},
	catalog.WebhookRemoved{Tenant: "acme", Webhook: "ops"},
	// A real one has a provider, a tenant or a webhook.
	catalog.CredentialStored{StoredCredential: catalog.StoredCredential{
		CredentialOf: catalog.CredentialOf{Provider: "bedrock-east", Tenant: "acme", Webhook: "ops", Key: "k1"},
		ID:           uuid.MustParse("0193e8f0-0000-7000-8000-000000000003"), LastFour: "9f3e",
	}},
	catalog.CredentialDeleted{CredentialOf: catalog.CredentialOf{Provider: "bedrock-east", Tenant: "acme", Webhook: "ops", Key: "k1"}},
	catalog.ConfigurationChanged{Objects: 3},
	catalog.KeyRevoked{Key: "0193e8f0-0000-7000-8000-000000000001", RevokedAt: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)},
}

// A real answer has a shape or a failure, and a real pool more than one deployment.
var sampleEvidence = equivalence.Evidence{
	Format: 1, Model: "fable-5", ExactModel: "fable-5-20260601", At: time.Date(2026, 11, 1, 12, 0, 0, 123000, time.UTC),
	Set: "sha256:0b2c", Result: equivalence.Failed,
	Pool: []equivalence.Member{{
		Deployment: "fable-5@bedrock", Provider: "bedrock-east", Protocol: "bedrock", UpstreamModel: "fable-5-20260601",
		Result: equivalence.Failed,
	}},
	Cases: []equivalence.Case{{
		Name: "two_tools", Result: equivalence.Failed, Reference: "fable-5@anthropic",
		Answers: []equivalence.Answer{{
			Deployment: "fable-5@bedrock", Result: equivalence.Failed, Reason: equivalence.Unreachable,
			Failure: failure.ServerError, Code: "overloaded", Status: 503, WorstCase: 17952000, Cost: new(money.NanoUSD(1500)),
			Shape: &equivalence.Shape{
				Output: []string{"text", "tool_call"}, Calls: []equivalence.Call{{Tool: "weather", Valid: true}},
				Structured: new(true), Overrun: true, Stop: "tool_calls",
				Usage: usage.Usage{
					Input: usage.Of(90), CachedInput: usage.Of(1), CacheWrite5m: usage.Of(2), CacheWrite1h: usage.Of(3),
					AudioInput: usage.Of(5), ImageInput: usage.Of(6), Output: usage.Of(12), Reasoning: usage.Of(4),
					AudioOutput: usage.Of(7), ImageOutput: usage.Of(8),
				},
			},
		}},
		Differences: []equivalence.Difference{{
			Deployment: "fable-5@bedrock", Aspect: equivalence.AspectTools, Against: "fable-5@anthropic",
			Want: "clock, weather", Got: "weather",
		}},
	}},
	LeftOut: []string{"structured_output"}, MaxSpend: 500000000, MaxAttempts: 40, Attempts: 2, Cost: 1500, Exposure: 17952000,
}

package event

import (
	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
)

var (
	sampleUsage = usage.Usage{
		Input: usage.Of(805), CachedInput: usage.Of(512), CacheWrite5m: usage.Of(64), CacheWrite1h: usage.Of(32),
		Output: usage.Of(96), Reasoning: usage.Of(40),
		AudioInput: usage.Of(8), ImageInput: usage.Of(16), AudioOutput: usage.Of(4), ImageOutput: usage.Of(2),
	}
	samplePercent = decimal.RequireFromString("7.5")
	sampleRefusal = request.Refusal{
		Code: "insufficient_quota", Scope: "deployment", Of: "fable-5@aws", Masked: true, Limit: 500_000_000_000, Used: 499_999_999_999,
		Unit: "nanousd", Per: "month", Resets: "2026-12-01T00:00:00Z",
	}
	sampleSkip = request.RouteSkipped{
		Rung: 1, Provider: "anthropic-main", Model: "fable-5", Reason: request.SkipBreakerOpen, Masked: true,
		Detail: map[string]string{"circuit": "endpoint", "until": "2026-11-29T10:00:30Z"},
	}
)

var samplePromotion = &request.Gift{ID: "launch", Free: money.Free{Input: true, CachedInput: true, Output: true}}

var requestSamples = []Event{
	request.RequestAdmitted{
		Tenant: "acme", Key: "0193e8f0-0000-7000-8000-000000000001", Team: "search", Identity: "ada", Dialect: "chat", RequestedModel: "fast",
		CanonicalModel: "fable-5", Class: "assistant", Priority: "realtime", Stream: true, Snapshot: "sha256:00ff", DeadlineMS: 600000, MaxAttempts: 8,
		Fallback: "any", FreeOnly: true, Estimate: request.Estimate{InputTokens: 812, MaxOutputTokens: 1024},
		ClientRequestID: "client-1", ClientRetry: 1,
	},
	request.RequestRefused{
		Tenant: "acme", Key: "0193e8f0-0000-7000-8000-000000000001", Dialect: "chat", RequestedModel: "fast",
		Snapshot: "sha256:00ff", ClientRequestID: "client-1", Refusal: sampleRefusal, Skipped: []request.RouteSkipped{sampleSkip},
	},
	sampleSkip,
	request.AttemptReserved{
		Attempt: 1, Rung: 1, Kind: request.KindFailover, Tenant: "acme", Provider: "bedrock-east", Model: "fable-5",
		Deployment: "fable-5@bedrock", ProviderKey: "k1", CredentialOwner: request.Operator, FallbackKind: request.SameModel,
		FallbackDepth: 1, Selection: request.HouseAccountExhausted, Masked: true, OnClientCancel: "drain", Estimate: request.Estimate{InputTokens: 812, MaxOutputTokens: 1024},
		Prices: samplePrices, Reserved: 17_952_000, Promotion: samplePromotion, SurchargePercent: &samplePercent, Holds: []string{"org/acme/usd/month/2026-11"},
		Takes: []request.Take{{Key: "org/acme/requests/minute/trailing", Settled: 1}, {Key: "org/acme/tokens/held", Held: 812_000}},
	},
	request.AttemptThrottled{Attempt: 1, Status: 429, RetryAfterMS: 2000, RetrySource: "retry-after", DurationMS: 212},
	request.ThrottleDecided{
		Attempt: 1, Decision: request.ThrottleBackoff, Mode: "maximize_cache", Estimate: 0.75, Threshold: new(0.5),
		Allowance: 3, DelayMS: 500,
	},
	request.AttemptFailed{
		Attempt: 1, Failure: failure.ServerError, Status: 503, Code: "overloaded", PossiblyBilled: true,
		RetryAfterMS: 1000, RetrySource: "retry-after-ms", DurationMS: 212,
	},
	request.AttemptCommitted{Attempt: 2, FirstOutput: "text", TTFTMS: 340},
	request.AttemptSettled{
		Attempt: 2, Tenant: "acme", Key: "0193e8f0-0000-7000-8000-000000000001", Provider: "bedrock-east", Model: "fable-5",
		Deployment: "fable-5@bedrock", CredentialOwner: request.Workspace, FallbackKind: request.ModelChange, Masked: true,
		Basis: usage.BasisReported, Usage: sampleUsage,
		Amounts: request.Amounts{List: 5, Charge: 4, ProviderCost: 3, Subsidy: 2, Surcharge: 1}, Promotion: samplePromotion, Waived: true, SurchargePercent: &samplePercent,
		Reserved: 17_952_000, Holds: []string{"org/acme/usd/month/2026-11"},
		Takes: []request.Take{
			{Key: "org/acme/tokens/held", Held: -812_000}, {Key: "org/acme/tokens/day/2026-11-30", Settled: 440_200},
		},
		Failure: failure.StreamTruncated, DurationMS: 1234,
	},
	request.ReservationReleased{Attempt: 1, Released: 17_952_000},
	request.ReservationOverrun{Attempt: 2, Overrun: 1000},
	request.MeterHoldPlaced{
		Attempt: 2, Tenant: "acme", Key: "0193e8f0-0000-7000-8000-000000000001", Model: "fable-5", Tokens: 1836,
		Takes: []request.Take{{Key: "org/acme/tokens/held", Held: 1_836_000}, {Key: "org/acme/tokens/day/2026-11-30", Settled: 1}},
	},
	request.MeterHoldResolved{
		Attempt: 2, By: "reconciliation", Usage: sampleUsage,
		Takes: []request.Take{{Key: "org/acme/tokens/held", Held: -1_836_000}, {Key: "org/acme/tokens/day/2026-11-30", Settled: 440_200}},
	},
	request.LimitObserved{Attempt: 1, Budget: "organization/requests/minute", Refusal: sampleRefusal},
	request.BudgetThresholdReached{
		Tenant: "acme", Budget: "deployment:fable-5@aws/usd/month", Scope: "deployment", Masked: true, Unit: "nanousd", Window: "2026-11",
		Threshold: 400_000_000_000, Limit: 500_000_000_000, Used: 400_017_952_000, Resets: "2026-12-01T00:00:00Z",
		Request: "0193748e-9a4b-7c3d-8e2f-1a2b3c4d5e6f",
	},
	request.ModelChanged{From: "fable-5", To: "fable-4", By: "chain"},
	request.RequestFinalized{
		Outcome: request.Refused, Code: "insufficient_quota", Attempts: 2, FallbackDepth: 1,
		CanonicalModel: "fable-5", DurationMS: 1500, TTFTMS: new(int64(340)), Refusal: &sampleRefusal,
		Exhausted: "attempts_exhausted",
	},
}

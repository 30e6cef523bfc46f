package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/explain"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func recorded(events ...event.Event) []eventstore.Recorded {
	var list []eventstore.Recorded
	for i, e := range events {
		enc := event.Encode(e)
		list = append(list, eventstore.Recorded{
			Event:         eventstore.Event{Type: enc.Type, Version: enc.Version, Data: enc.Data, At: noon.Add(time.Duration(i) * time.Second)},
			StreamVersion: int64(i + 1),
		})
	}
	return list
}

// Rules: X5, H11.
func TestEveryMoveHasItsReason_X5_H11(t *testing.T) {
	opened := recorded(circuit.CircuitOpened{
		Name: circuit.Name{Kind: circuit.Endpoint, Key: "e"}, Trips: 1, Until: noon.Add(time.Minute),
		Cause: circuit.Cause{Class: failure.ConnectError},
	})
	half := 0.5
	settled := request.AttemptSettled{Attempt: 2, Basis: usage.BasisReported}
	settled.Charge = 123_000
	stream := recorded(
		request.RequestAdmitted{Tenant: "acme", RequestedModel: "fast", CanonicalModel: "fable-5", MaxAttempts: 8, DeadlineMS: 600_000, Estimate: request.Estimate{InputTokens: 812}},
		request.RouteSkipped{Rung: 0, Provider: "anthropic-main", Reason: request.SkipBreakerOpen, Detail: map[string]string{"circuit": "endpoint", "until": "2026-11-29T12:01:00Z", "stream": "circuit/endpoint/e"}},
		request.AttemptReserved{Attempt: 1, Rung: 1, Kind: request.KindFirst, Deployment: "fable-5@bedrock", Reserved: 17_952_000},
		request.AttemptThrottled{Attempt: 1, Status: 429, RetryAfterMS: 2000, RetrySource: "retry-after"},
		request.ThrottleDecided{Attempt: 1, Decision: request.ThrottleFailoverCold, Mode: "maximize_cache", Estimate: 0.2, Threshold: &half},
		request.AttemptReserved{Attempt: 2, Rung: 2, Kind: request.KindFailover, Deployment: "fable-5@relay"},
		request.AttemptCommitted{Attempt: 2, FirstOutput: "text", TTFTMS: 340},
		settled,
		request.RequestFinalized{Outcome: request.Completed, Attempts: 2, DurationMS: 900},
	)
	lines, err := explain.Request(stream, func(name string, at time.Time) string {
		if name != "circuit/endpoint/e" {
			t.Errorf("asked for %s", name)
		}
		return explain.Circuit(opened, at)
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lines {
		got = append(got, l.Text)
	}
	want := []string{
		`acme asked for "fast", which stands for fable-5, planned at 812 input tokens. It may make 8 attempts within 10m0s.`,
		`Route 0 (anthropic-main) was not called: the circuit of its endpoint was open until 2026-11-29T12:01:00Z. It had opened at 12:00:00 after connect_error.`,
		`Attempt 1 goes to fable-5@bedrock: it is the first usable route of the plan. 0.017952 USD is held for it.`,
		`fable-5@bedrock said "not now" (status 429), asking for 2s (retry-after).`,
		`The walk moved on: too little of the prompt is cached there to wait for (mode maximize_cache, cache estimate 0.20, threshold 0.50).`,
		`Attempt 2 goes to fable-5@relay: the failure was the route's before, and this is the next route of the same model. 0 USD is held for it.`,
		`Attempt 2 committed with its first text after 340ms: from here on no other answer could start.`,
		`Attempt 2 settled on reported usage: 0.000123 USD charged.`,
		`The request ended as completed after 900ms and 2 attempts.`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A trail says that a promotion paid, what, and why it did not.
//
// Rules: X5, M10.
func TestPromotionsAreExplained_X5_M10(t *testing.T) {
	launch := &request.Gift{ID: "launch", Free: money.Free{Input: true, CachedInput: true, Output: true}}
	settled := request.AttemptSettled{Attempt: 1, Basis: usage.BasisReported, Promotion: launch}
	settled.Subsidy = 123_000
	refused := func(r request.Refusal) request.RequestRefused {
		r.Code, r.Scope = "insufficient_quota", "promotion"
		return request.RequestRefused{Refusal: r}
	}
	for _, c := range []struct {
		event event.Event
		want  string
	}{
		{request.RequestAdmitted{RequestedModel: "m:free", FreeOnly: true}, "It may only be free of charge."},
		{request.AttemptReserved{Attempt: 1, Kind: request.KindFirst, Promotion: launch}, "Promotion launch pays its input, cached input and output."},
		{settled, "0 USD charged, 0.000123 USD paid by promotion launch."},
		{request.RouteSkipped{Rung: 1, Reason: request.SkipNotFree}, "nothing makes it free of charge"},
		{refused(request.Refusal{}), "because nothing makes it free of charge"},
		{refused(request.Refusal{Limit: 2500, Used: 2000, Unit: "tokens"}), "because the promotion's allowance of 2500 tokens had 2000 in use"},
		{refused(request.Refusal{Limit: 2_000_000_000, Used: 1_000_000_000, Unit: "nanousd"}), "the promotion budget of 2 USD had 1 USD in use"},
	} {
		lines, err := explain.Request(recorded(c.event), nil)
		if err != nil || !strings.Contains(lines[0].Text, c.want) {
			t.Errorf("%v, %v; want %q", lines, err, c.want)
		}
	}
}

// A refusal is explained in the unit of its limit.
//
// Rules: X5, A9.
func TestRefusalsAreExplained_X5_A9(t *testing.T) {
	for _, c := range []struct {
		refusal request.Refusal
		want    string
	}{
		{request.Refusal{Code: "c", Scope: "organization", Limit: 2e9, Used: 1e9, Unit: "nanousd", Per: "month"}, "c, because the organization budget of 2 USD per month had 1 USD in use."},
		{request.Refusal{Code: "c", Scope: "organization", Limit: 2e9, Used: 1e9, Unit: "nanousd", Per: "total"}, "budget of 2 USD in total had 1 USD in use."},
		{request.Refusal{Code: "c", Scope: "key", Limit: 2, Used: 3, Unit: "requests", Per: "minute"}, "c, because the key limit of 2 requests per minute had 3 in use."},
		{request.Refusal{Code: "c", Scope: "team", Limit: 500, Used: 510, Unit: "tokens"}, "c, because the team limit of 500 tokens had 510 in use."},
		{request.Refusal{Code: "context_length_exceeded", Scope: "model", Limit: 128_000, Used: 130_000, Unit: "tokens"}, "because it needs 130000 tokens and the largest window takes 128000."},
		{request.Refusal{Code: "capability_unavailable", Scope: "model"}, "capability_unavailable."},
	} {
		lines, err := explain.Request(recorded(request.RequestRefused{Refusal: c.refusal}), nil)
		if err != nil || !strings.HasSuffix(lines[0].Text, c.want) {
			t.Errorf("%v, %v; want %q", lines, err, c.want)
		}
	}
}

// Rules: X5, R9.
func TestLimitsOfARouteAndObservedOnesAreExplained_X5_R9(t *testing.T) {
	for _, c := range []struct {
		event event.Event
		want  string
	}{
		{
			request.RouteSkipped{Reason: request.SkipRateLimit, Detail: map[string]string{"budget": "pool/requests/day", "unit": "requests", "limit": "2", "used": "2"}},
			"its limit pool/requests/day of 2 requests had 2 requests in use",
		},
		{
			request.RouteSkipped{Reason: request.SkipDeploymentBudget, Detail: map[string]string{"budget": "deployment/usd/day", "unit": "nanousd", "limit": "2000000000", "used": "1500000000"}},
			"its limit deployment/usd/day of 2 USD had 1.5 USD in use",
		},
		{
			request.LimitObserved{Budget: "key/tokens/day", Refusal: request.Refusal{Code: "rate_limit_exceeded", Scope: "key", Limit: 5, Used: 6, Unit: "tokens", Per: "day"}},
			"The limit key/tokens/day only observes. It would have refused: rate_limit_exceeded, because the key limit of 5 tokens per day had 6 in use.",
		},
	} {
		lines, err := explain.Request(recorded(c.event), nil)
		if err != nil || len(lines) != 1 || !strings.Contains(lines[0].Text, c.want) {
			t.Errorf("%v, %v; want %q", lines, err, c.want)
		}
	}
}

// Rules: H11.
func TestOnlyThePastExplains_H11(t *testing.T) {
	history := recorded(
		circuit.CircuitOpened{Cause: circuit.Cause{Class: failure.ServerError, Status: 503}, Trips: 2},
		circuit.CircuitHalfOpened{},
		circuit.CircuitClosed{},
	)
	for after, want := range map[time.Duration]string{
		-time.Second:            "",
		0:                       "It had opened at 12:00:00, for the 2. time in a row, after server_error, status 503.",
		1500 * time.Millisecond: "Its one probe was under way since 12:00:01.",
		time.Minute:             "",
	} {
		if got := explain.Circuit(history, noon.Add(after)); got != want {
			t.Errorf("%s later: %q, want %q", after, got, want)
		}
	}
}

// TestEveryClassAndReasonHasASentence fails when a class, a skip or a kind is added
// without one of its own.
//
// Rules: X5.
func TestEveryClassAndReasonHasASentence_X5(t *testing.T) {
	for _, class := range failure.Classes() {
		lines, err := explain.Request(recorded(request.AttemptFailed{Attempt: 1, Failure: class, Status: 500, PossiblyBilled: failure.Of(class).MaybeBilled}), nil)
		if err != nil || len(lines) != 1 || !strings.Contains(lines[0].Text, string(class)) {
			t.Errorf("%s: %v, %v", class, lines, err)
		}
	}
	for _, e := range []event.Event{
		request.RouteSkipped{Provider: "p", Reason: request.SkipBaseURLRefused},
		request.AttemptFailed{Attempt: 1, Failure: failure.BaseURLRefused},
	} {
		if lines, err := explain.Request(recorded(e), nil); err != nil || !strings.Contains(lines[0].Text, "into the own network, and no operator has opened that host") {
			t.Errorf("%+v: %v, %v", e, lines, err)
		}
	}
	for _, code := range []string{"insufficient_quota", "model_not_found"} {
		refused := request.RequestRefused{Refusal: request.Refusal{Code: code, Scope: "organization", Limit: 1_000_000_000, Used: 999_000_000}}
		lines, err := explain.Request(recorded(refused), nil)
		if err != nil || !strings.Contains(lines[0].Text, "the organization budget of 1 USD had 0.999 USD in use") {
			t.Errorf("%s: %v, %v", code, lines, err)
		}
	}
}

package trail_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
	"github.com/sluice-gateway/sluice/projections/trail"
)

var update = flag.Bool("update", false, "write the golden files anew")

// example is the request of api.md: a skip, a failure, an answer.
func example() []eventstore.Recorded {
	price := decimal.RequireFromString("3.00")
	reserved := func(attempt int, kind request.AttemptKind, provider string, masked bool) request.AttemptReserved {
		return request.AttemptReserved{
			Attempt: attempt, Rung: attempt, Kind: kind, Tenant: "acme", Provider: provider, Model: "fable-5",
			Deployment: "fable-5@" + provider, ProviderKey: "k1", CredentialOwner: request.Operator,
			FallbackKind: request.SameModel, FallbackDepth: attempt - 1, Masked: masked,
			Prices:   money.Prices{Input: &price, Output: &price, Source: provider + " price page"},
			Reserved: 17_952_000, Holds: []string{"org/acme/usd/month/2026-11"},
		}
	}
	settled := func(attempt int, provider string, u usage.Usage, charge money.NanoUSD) request.AttemptSettled {
		return request.AttemptSettled{
			Attempt: attempt, Tenant: "acme", Key: "k1", Provider: provider, Model: "fable-5", Deployment: "fable-5@" + provider,
			CredentialOwner: request.Operator, FallbackKind: request.SameModel,
			Basis: usage.BasisReported, Usage: u, Amounts: request.Amounts{List: charge, Charge: charge},
			Reserved: 17_952_000, Holds: []string{"org/acme/usd/month/2026-11"},
		}
	}
	stream := projectiontest.Stream(0,
		projectiontest.Admitted("acme"),
		request.RouteSkipped{
			Provider: "anthropic-main", Model: "fable-5", Reason: request.SkipBreakerOpen, Masked: true,
			Detail: map[string]string{"circuit": "endpoint", "until": "2026-11-29T10:00:30Z", "endpoint": "api.anthropic-main.test"},
		},
		reserved(1, request.KindFirst, "bedrock-east", false),
		request.AttemptFailed{Attempt: 1, Failure: failure.ServerError, Status: 503, DurationMS: 212},
		settled(1, "bedrock-east", usage.Usage{Input: usage.Of(0)}, 0),
		request.ReservationReleased{Attempt: 1, Released: 17_952_000},
		reserved(2, request.KindFailover, "hidden-west", true),
		request.AttemptCommitted{Attempt: 2, FirstOutput: "text", TTFTMS: 340},
		settled(2, "hidden-west", usage.Usage{Input: usage.Of(805), CachedInput: usage.Of(512), Output: usage.Of(96), Reasoning: usage.Of(0)}, 3_855_000),
		request.RequestFinalized{Outcome: request.Completed, Attempts: 2, FallbackDepth: 1, CanonicalModel: "fable-5", DurationMS: 1240},
	)
	for i, offset := range []int{0, 0, 1, 213, 213, 213, 214, 554, 1240, 1240} {
		stream[i].At = projectiontest.Start.Add(time.Duration(offset) * time.Millisecond)
	}
	return stream
}

func build(t testing.TB, stream []eventstore.Recorded, view trail.View) trail.Trail {
	t.Helper()
	tr, err := trail.Build(stream, view)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// The JSON of api.md, for both views and for a request that still runs (X1).
func TestJSON_X1(t *testing.T) {
	for name, c := range map[string]struct {
		events int
		view   trail.View
	}{
		"caller.json":   {10, trail.Caller},
		"operator.json": {10, trail.Operator},
		"running.json":  {4, trail.Caller},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := json.Marshal(build(t, example()[:c.events], c.view))
			if err != nil {
				t.Fatal(err)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, out, "", "  "); err != nil {
				t.Fatal(err)
			}
			golden(t, name, append(pretty.Bytes(), '\n'))
		})
	}
}

// Whatever happens to a request, a caller finds no trace of where a masked route
// went, and the operator does (X1).
func TestMaskedStaysMasked_X1(t *testing.T) {
	for n := 1; n <= len(example()); n++ {
		out, err := json.Marshal(build(t, example()[:n], trail.Caller))
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"hidden-west", "anthropic-main"} {
			if bytes.Contains(out, []byte(secret)) {
				t.Errorf("after %d events the caller sees %s in %s", n, secret, out)
			}
		}
	}
	out, _ := json.Marshal(build(t, example(), trail.Operator))
	for _, name := range []string{"hidden-west", "anthropic-main", "org/acme/usd/month/2026-11"} {
		if !bytes.Contains(out, []byte(name)) {
			t.Errorf("the operator does not see %s", name)
		}
	}
	refused, _ := json.Marshal(build(t, projectiontest.Stream(0, request.RequestRefused{
		Tenant: "acme", Refusal: request.Refusal{Code: "rate_limit_exceeded", Scope: "deployment", Of: "m@hidden-west"},
		Skipped: []request.RouteSkipped{{Provider: "hidden-west", Reason: request.SkipRateLimit, Masked: true}},
	}), trail.Caller))
	if bytes.Contains(refused, []byte("hidden-west")) {
		t.Errorf("a refusal shows %s", refused)
	}
	observed, _ := json.Marshal(build(t, projectiontest.Stream(0,
		request.AttemptReserved{Attempt: 1, Provider: "hidden-west", Masked: true},
		request.LimitObserved{Attempt: 1, Budget: "deployment:m@hidden-west/requests/day", Refusal: request.Refusal{Scope: "deployment", Of: "m@hidden-west", Limit: 4}},
	), trail.Caller))
	if bytes.Contains(observed, []byte("hidden-west")) || !bytes.Contains(observed, []byte(`"limit":4`)) {
		t.Errorf("a limit that was only observed shows %s", observed)
	}
	ended, _ := json.Marshal(build(t, projectiontest.Stream(0,
		request.RouteSkipped{Provider: "hidden-west", Reason: request.SkipRateLimit, Masked: true},
		request.RequestFinalized{Outcome: request.Refused, Refusal: &request.Refusal{Scope: "deployment", Of: "m@hidden-west", Limit: 4}},
	), trail.Caller))
	if bytes.Contains(ended, []byte("hidden-west")) || !bytes.Contains(ended, []byte(`"limit":4`)) {
		t.Errorf("a refusal at the end shows %s", ended)
	}
	open, _ := json.Marshal(build(t, projectiontest.Stream(0, request.RequestRefused{
		Tenant: "acme", Refusal: request.Refusal{Code: "rate_limit_exceeded", Scope: "deployment", Of: "m@east"},
		Skipped: []request.RouteSkipped{{Provider: "east", Reason: request.SkipRateLimit}},
	}), trail.Caller))
	if !bytes.Contains(open, []byte("m@east")) {
		t.Errorf("a refusal that hides nothing: %s", open)
	}
}

// Every event of the stream is an entry, numbered 1..n, at its own time; building
// at once and following event by event are the same (X1, X3).
func TestNothingIsLost_X1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := projectiontest.Stream(0, projectiontest.Life(t)...)
		view := rapid.SampledFrom([]trail.View{trail.Caller, trail.Operator}).Draw(t, "view")
		whole, err := trail.Build(stream, view)
		if err != nil {
			t.Fatal(err)
		}
		if len(whole.Entries) != len(stream) {
			t.Fatalf("%d entries of %d events", len(whole.Entries), len(stream))
		}
		follow := trail.NewBuilder(view)
		for i, rec := range stream {
			entry, err := follow.Add(rec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whole.Entries[i], entry); diff != "" {
				t.Fatalf("entry %d (-whole +followed):\n%s", i, diff)
			}
			if entry.Seq != int64(i+1) || entry.Event != rec.Type || !entry.At.Equal(rec.At) {
				t.Fatalf("entry %d is %+v of %+v", i, entry, rec)
			}
			if _, err := json.Marshal(entry); err != nil {
				t.Fatal(err)
			}
		}
		if !follow.Final() {
			t.Fatal("a whole life is not final")
		}
	})
}

// An event of a later release is an entry too; its fields are the operator's (C15).
func TestUnknownTypeIsAnEntry_C15(t *testing.T) {
	stream := example()
	stream[3].Type, stream[3].Data = "attempt_teleported", []byte(`{"to":"hidden-west"}`)
	caller, _ := json.Marshal(build(t, stream, trail.Caller).Entries[3])
	if want := `{"seq":4,"at":"2026-11-29T10:00:00.213123Z","event":"attempt_teleported"}`; string(caller) != want {
		t.Errorf("caller: %s", caller)
	}
	operator, _ := json.Marshal(build(t, stream, trail.Operator).Entries[3])
	if !strings.Contains(string(operator), `"to":"hidden-west"`) {
		t.Errorf("operator: %s", operator)
	}
}

// The waterfall of `sluice trail ID` (X5).
func TestRender_X5(t *testing.T) {
	refused := projectiontest.Stream(0, request.RequestRefused{
		Tenant: "acme\x1b[2J", RequestedModel: "fast", Refusal: request.Refusal{Code: "insufficient_quota", Scope: "organization"},
	})
	for name, c := range map[string]struct {
		stream []eventstore.Recorded
		view   trail.View
		width  int
		colour bool
	}{
		"operator.txt": {example(), trail.Operator, 120, false},
		"caller.txt":   {example(), trail.Caller, 120, false},
		"narrow.txt":   {example(), trail.Operator, 20, false},
		"colour.txt":   {example(), trail.Operator, 100, true},
		"running.txt":  {example()[:8], trail.Operator, 120, false},
		"refused.txt":  {refused, trail.Caller, 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, []byte(trail.Render(build(t, c.stream, c.view), c.width, c.colour)))
		})
	}
}

// However short or long a request was, a line fits the width and nothing panics.
func TestRenderFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := projectiontest.Stream(0, projectiontest.Life(t)...)
		for i := range stream {
			jitter := rapid.Int64Range(-1e9, 1e12).Draw(t, "observed")
			stream[i].At = projectiontest.Start.Add(time.Duration(jitter)) // clocks of two workers
		}
		tr, err := trail.Build(stream[:rapid.IntRange(0, len(stream)).Draw(t, "events")], trail.Operator)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(trail.Render(tr, 80, false), "\n")[2:] {
			if n := len([]rune(line)); n > 80 {
				t.Fatalf("%d columns: %s", n, line)
			}
		}
	})
}

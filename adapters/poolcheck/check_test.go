package poolcheck_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/adapters/dialect/registry"
	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/adapters/poolcheck"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/adapters/tokens"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/equivalence"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
)

// world is a fake provider and what asks it.
type world struct {
	fake    *fakeprovider.Server
	checker *poolcheck.Checker
}

// inEnv are credentials of the environment alone.
type inEnv struct{ *secrets.Env }

func (e inEnv) Lookup(_ context.Context, p *catalog.Provider, keyID string) (secrets.Credential, error) {
	return e.Env.Lookup(p, keyID)
}

var estimator = tokens.NewEstimator()

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Setenv("POOL_KEY", "sk-canary-key-0123")
	t.Setenv("POOL_ACCESS", "AKIACANARY")
	t.Setenv("POOL_SECRET", "canary-secret")
	w := &world{fake: fakeprovider.Start(t, fakeprovider.Options{})}
	client := provider.New(provider.Config{Outbound: registry.Outbound(), InternalHosts: network.MustHosts("127.0.0.1")})
	t.Cleanup(client.Close)
	w.checker = &poolcheck.Checker{
		Providers: client, Secrets: inEnv{secrets.NewEnv()}, Estimator: estimator,
		Now: func() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) },
	}
	return w
}

// member is one deployment of a test's pool.
type member struct {
	protocol catalog.Protocol
	// outcomes are the fake's, one a case in the order of the set.
	outcomes string
	change   func(t *poolcheck.Target)
}

// good are proper answers to the whole set.
const good = "ok,ok,ok,tools:2,words:64,ok"

// with is good but for one case.
func with(i int, outcome string) string {
	list := strings.Split(good, ",")
	list[i] = outcome
	return strings.Join(list, ",")
}

// pool makes the members and tells the provider what each of them answers. One call more
// than its outcomes gets a status that no other has.
func (w *world) pool(t *testing.T, members ...member) poolcheck.Pool {
	t.Helper()
	var script fakeprovider.Script
	in, out := decimal.RequireFromString("3"), decimal.RequireFromString("15")
	pool := poolcheck.Pool{Model: catalog.Model{Slug: "fable-5", ExactModel: "fable-5-20260601"}}
	for i, m := range members {
		p := catalog.Provider{ID: fmt.Sprintf("p%d", i), Protocol: m.protocol, BaseURL: w.fake.URL(), Keys: []catalog.ProviderKey{{ID: "k1", Env: "POOL_KEY"}}}
		switch m.protocol {
		case catalog.OpenAI, catalog.OpenAIResponses:
			p.BaseURL += "/v1"
		case catalog.Bedrock:
			p.Region, p.Keys = "us-east-1", []catalog.ProviderKey{{ID: "aws", EnvAccessKey: "POOL_ACCESS", EnvSecretKey: "POOL_SECRET"}}
		}
		target := poolcheck.Target{Provider: p, Deployment: catalog.Deployment{
			ID: string(rune('a' + i)), Provider: p.ID, UpstreamModel: fmt.Sprintf("upstream-%d", i),
			Prices: money.Prices{Input: &in, Output: &out},
		}}
		if m.change != nil {
			m.change(&target)
		}
		pool.Targets = append(pool.Targets, target)
		script.Rules = append(script.Rules, fakeprovider.Rule{Model: target.Deployment.UpstreamModel, Outcomes: append(strings.Split(m.outcomes, ","), "status:418")})
	}
	if err := w.fake.SetScript(script); err != nil {
		t.Fatal(err)
	}
	return pool
}

var generous = poolcheck.Limits{MaxSpend: money.NanoPerUSD, MaxAttempts: 100}

func (w *world) check(t *testing.T, limits poolcheck.Limits, members ...member) equivalence.Evidence {
	t.Helper()
	pool := w.pool(t, members...)
	w.fake.Reset()
	e, err := w.checker.Check(t.Context(), pool, limits)
	if err != nil {
		t.Fatal(err)
	}
	if calls := w.fake.Ledger().Total; calls != int64(e.Attempts) {
		t.Errorf("the provider saw %d calls, the evidence says %d", calls, e.Attempts)
	}
	return e
}

func caseOf(t *testing.T, e equivalence.Evidence, name string) equivalence.Case {
	t.Helper()
	i := slices.IndexFunc(e.Cases, func(c equivalence.Case) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no case %s in %+v", name, e)
	}
	return e.Cases[i]
}

// A pool whose deployments answer alike passes, whatever protocols they speak, and all
// of them were asked everything once.
//
// Rules: N24.
func TestAPoolThatAnswersAlikePasses_N24(t *testing.T) {
	w := newWorld(t)
	e := w.check(t, generous,
		member{protocol: catalog.Anthropic, outcomes: good}, member{protocol: catalog.Bedrock, outcomes: good},
		member{protocol: catalog.OpenAI, outcomes: good}, member{protocol: catalog.Gemini, outcomes: good})
	if e.Result != equivalence.Passed || e.Attempts != 24 || len(e.Cases) != 6 || len(e.LeftOut) > 0 {
		t.Fatalf("%s after %d calls: %s", e.Result, e.Attempts, differences(e))
	}
	for _, m := range e.Pool {
		if m.Result != equivalence.Passed {
			t.Errorf("%+v", m)
		}
	}
	if got := caseOf(t, e, poolcheck.TwoToolsCase).Answers[0].Shape; len(got.Calls) != 2 || got.Calls[0] != (equivalence.Call{Tool: "get_temperature", Valid: true}) {
		t.Errorf("two tools: %+v", got)
	}
	if got := caseOf(t, e, poolcheck.StructuredCase).Answers[2].Shape; got.Structured == nil || !*got.Structured || got.Stop != "stop" {
		t.Errorf("structured output: %+v", got)
	}
	var cost money.NanoUSD
	for _, c := range e.Cases {
		for _, a := range c.Answers {
			cost += *a.Cost
		}
	}
	if e.Cost != cost || cost == 0 || e.Exposure != 0 {
		t.Errorf("cost %d, sum %d, exposure %d", e.Cost, cost, e.Exposure)
	}
	streamed := 0
	for _, call := range w.fake.Ledger().Calls {
		if call.Stream {
			streamed++
		}
	}
	if streamed != 20 {
		t.Errorf("%d calls streamed, want all but the 4 for a whole answer", streamed)
	}
}

func differences(e equivalence.Evidence) string {
	var b strings.Builder
	for _, c := range e.Cases {
		for _, a := range c.Answers {
			fmt.Fprintf(&b, "\n%s %s: %s %s %s %s", c.Name, a.Deployment, a.Result, a.Reason, a.Failure, a.Code)
		}
		for _, d := range c.Differences {
			fmt.Fprintf(&b, "\n%s: %+v", c.Name, d)
		}
	}
	return b.String()
}

// A provider that answers otherwise is found in the aspect in which it does, over the
// wire and in every protocol.
//
// Rules: N24.
func TestEachFaultShowsAsADifference_N24(t *testing.T) {
	w := newWorld(t)
	const text, structured, oneTool, twoTools, length, stop = 0, 1, 2, 3, 4, 5
	for _, c := range []struct {
		at      int
		outcome string
		aspect  equivalence.Aspect
		against string
	}{
		{text, "ok+input:120", equivalence.AspectInputTokens, "a"},
		{text, "ok+reasoning:4", equivalence.AspectOutput, "a"},
		{text, "finish:length", equivalence.AspectStopReason, ""},
		{text, "tool", equivalence.AspectTools, ""},
		{structured, "off-schema", equivalence.AspectStructure, ""},
		{structured, "ok+input:140", equivalence.AspectInputTokens, "a"},
		{oneTool, "tool+off-schema", equivalence.AspectArguments, ""},
		{oneTool, "tools:2", equivalence.AspectTools, "a"},
		{twoTools, "tools:1", equivalence.AspectTools, "a"},
		{length, "words:8", equivalence.AspectStopReason, ""},
		{stop, "no-stop", equivalence.AspectStopSequence, ""},
		{stop, "ok+usage:zero", equivalence.AspectUsage, "a"},
	} {
		for _, protocol := range []catalog.Protocol{catalog.Anthropic, catalog.Bedrock, catalog.OpenAI, catalog.Gemini} {
			e := w.check(t, generous, member{protocol: catalog.Anthropic, outcomes: good}, member{protocol: protocol, outcomes: with(c.at, c.outcome)})
			got := e.Cases[c.at]
			i := slices.IndexFunc(got.Differences, func(d equivalence.Difference) bool { return d.Aspect == c.aspect })
			if e.Result != equivalence.Failed || e.Pool[0].Result != equivalence.Passed || e.Pool[1].Result != equivalence.Failed || i < 0 || got.Differences[i].Deployment != "b" || got.Differences[i].Against != c.against {
				t.Errorf("%s, %s of %s: %s%s", protocol, c.outcome, got.Name, e.Result, differences(e))
			}
			for j := range e.Cases {
				if j != c.at && e.Cases[j].Result != equivalence.Passed {
					t.Errorf("%s, %s of %s: %s is %s", protocol, c.outcome, got.Name, e.Cases[j].Name, e.Cases[j].Result)
				}
			}
		}
	}
}

// A call that fails is a failure, and who cannot be reached is not asked again: neither
// is ever said to be as the others, nor are the others when nobody is left.
//
// Rules: N24, Q1.
func TestFailuresAreNeverEquivalent_N24_Q1(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		outcomes string
		class    failure.Class
		calls    int64
	}{
		{with(1, "500"), failure.ServerError, 12},
		{with(2, "tool-cut"), failure.StreamTruncated, 12},
		{with(0, "empty"), failure.EmptyCompletion, 12},
		{with(0, "400"), failure.InvalidRequest, 12},
		// One call each, and then there is nobody to compare with.
		{with(0, "401"), failure.ProviderAuth, 2},
		{with(0, "404"), failure.DeploymentGone, 2},
		{with(0, "429"), failure.Throttled, 2},
	} {
		e := w.check(t, generous, member{protocol: catalog.OpenAI, outcomes: c.outcomes}, member{protocol: catalog.OpenAI, outcomes: good})
		if e.Result != equivalence.Failed || e.Pool[0].Result != equivalence.Failed || int64(e.Attempts) != c.calls {
			t.Errorf("%s: %s after %d calls%s", c.outcomes, e.Result, e.Attempts, differences(e))
		}
		found := false
		for _, one := range e.Cases {
			a, b := one.Answers[0], one.Answers[1]
			found = found || a.Failure == c.class
			switch {
			case a.Failure != "":
				if a.Result != equivalence.Failed || b.Result != equivalence.Untested || b.Reason != equivalence.NothingToCompare {
					t.Errorf("%s, %s: %+v, %+v", c.outcomes, one.Name, a, b)
				}
			case c.calls == 2:
				if a.Result != equivalence.Untested || a.Reason != equivalence.Unreachable || b.Result != equivalence.Untested {
					t.Errorf("%s, %s: %+v, %+v", c.outcomes, one.Name, a, b)
				}
			}
		}
		if !found {
			t.Errorf("%s: no %s%s", c.outcomes, c.class, differences(e))
		}
	}
	// A third is still compared with the second.
	e := w.check(t, generous, member{protocol: catalog.OpenAI, outcomes: "401"}, member{protocol: catalog.OpenAI, outcomes: good}, member{protocol: catalog.OpenAI, outcomes: good})
	if e.Result != equivalence.Failed || e.Pool[1].Result != equivalence.Passed || e.Pool[2].Result != equivalence.Passed || e.Attempts != 13 {
		t.Errorf("%+v after %d calls", e.Pool, e.Attempts)
	}
}

// What a deployment does not declare it is not asked, which is no pass; what none of them
// declares is not asked at all.
//
// Rules: N24, A4.
func TestCapabilitiesAreRespected_N24_A4(t *testing.T) {
	w := newWorld(t)
	declares := func(list ...catalog.Capability) func(*poolcheck.Target) {
		return func(t *poolcheck.Target) { t.Deployment.Capabilities = list }
	}
	e := w.check(t, generous,
		member{catalog.OpenAI, "ok,words:64,ok", declares(catalog.Chat)}, member{catalog.OpenAI, "ok,words:64,ok", declares(catalog.Chat)})
	if want := []string{poolcheck.StructuredCase, poolcheck.OneToolCase, poolcheck.TwoToolsCase}; e.Result != equivalence.Passed || !slices.Equal(e.LeftOut, want) || e.Attempts != 6 {
		t.Errorf("%s, left out %v, %d calls%s", e.Result, e.LeftOut, e.Attempts, differences(e))
	}
	e = w.check(t, generous,
		member{catalog.OpenAI, "ok,ok,words:64,ok", nil}, member{catalog.OpenAI, "ok,ok,words:64,ok", declares(catalog.Chat, catalog.StructuredOutput)})
	tool := caseOf(t, e, poolcheck.OneToolCase)
	if e.Result != equivalence.Untested || tool.Answers[1].Reason != equivalence.CapabilityMissing || tool.Answers[0].Reason != equivalence.NothingToCompare || e.Attempts != 8 {
		t.Errorf("%s, %d calls%s", e.Result, e.Attempts, differences(e))
	}
	// Responses has no stop sequences, and a small window no room.
	e = w.check(t, generous, member{catalog.OpenAI, good, nil}, member{catalog.OpenAIResponses, "ok,ok,ok,tools:2,words:64", nil})
	if got := caseOf(t, e, poolcheck.StopCase); e.Result != equivalence.Untested || got.Answers[1].Reason != equivalence.CapabilityMissing || e.Attempts != 10 {
		t.Errorf("%s, %d calls%s", e.Result, e.Attempts, differences(e))
	}
	small := func(t *poolcheck.Target) { t.Deployment.Context.MaxOutput = 512 }
	e = w.check(t, generous, member{catalog.OpenAI, "words:64", nil}, member{catalog.OpenAI, "words:64", small})
	if got := caseOf(t, e, poolcheck.TextCase); e.Result != equivalence.Untested || got.Answers[1].Reason != equivalence.ContextTooSmall || e.Attempts != 2 {
		t.Errorf("%s, %d calls%s", e.Result, e.Attempts, differences(e))
	}
}

// No content, no key and no word of the provider is in evidence: what a model calls a
// tool of its own included.
//
// Rules: N24, E10.
func TestEvidenceHoldsNoContent_N24_E10(t *testing.T) {
	w := newWorld(t)
	e := w.check(t, generous, member{protocol: catalog.OpenAI, outcomes: good}, member{protocol: catalog.OpenAI, outcomes: "tool,500,ok,tools:2,words:64,400"})
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"quick", "get_weather", "prompt_tokens=", "barometer", "lazy", "canary", "message"} {
		if strings.Contains(string(text), word) {
			t.Errorf("evidence says %q: %s", word, text)
		}
	}
	if !strings.Contains(string(text), equivalence.OtherTool) {
		t.Errorf("nothing was looked at: %s", text)
	}
}

// Whichever call is the last, what was cut off is no answer of the provider's.
//
// Rules: N24.
func TestAnInterruptedCheckIsNoEvidence_N24(t *testing.T) {
	w := newWorld(t)
	for _, last := range []int{1, 3, 12} {
		pool := w.pool(t, member{protocol: catalog.OpenAI, outcomes: good}, member{protocol: catalog.OpenAI, outcomes: good})
		w.fake.Reset()
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		w.checker.OnCall = func(string, string) {
			if calls++; calls == last {
				cancel()
			}
		}
		e, err := w.checker.Check(ctx, pool, generous)
		if err == nil || e.Result != "" || calls != last {
			t.Errorf("interrupted at %d: %v after %d calls: %+v", last, err, calls, e)
		}
	}
}

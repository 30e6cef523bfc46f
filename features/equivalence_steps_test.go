package features_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cucumber/godog"
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
	"github.com/sluice-gateway/sluice/domain/money"
)

// alike are proper answers to all that a check asks, in its order.
const alike = "ok,ok,ok,tools:2,words:64,ok"

// poolScene checks a pool of two deployments against one fake provider.
type poolScene struct {
	t        *testing.T
	fake     *fakeprovider.Server
	pool     poolcheck.Pool
	answers  [2]string
	evidence equivalence.Evidence
}

func registerPoolSteps(sc *godog.ScenarioContext, t *testing.T) {
	s := &poolScene{t: t}
	sc.Step(`^a pool of two deployments over "([^"]*)" and "([^"]*)"$`, s.aPool)
	sc.Step(`^the second answers "([^"]*)"$`, func(answers string) { s.answers[1] = answers })
	sc.Step(`^the pool is checked$`, func() error { return s.check(money.NanoPerUSD) })
	sc.Step(`^the pool is checked for at most (\S+) USD$`, func(usd string) error {
		d, err := decimal.NewFromString(usd)
		if err != nil {
			return err
		}
		most, err := money.FromUSD(d)
		if err != nil {
			return err
		}
		return s.check(most)
	})
	sc.Step(`^the check ends as "([^"]*)"$`, func(want string) error { return same("result", want, string(s.evidence.Result)) })
	sc.Step(`^each deployment was called (\d+) times$`, func(n int) error {
		return same("calls", int64(2*n), s.fake.Ledger().Total)
	})
}

func (s *poolScene) aPool(first, second string) {
	s.fake = fakeprovider.Start(s.t, fakeprovider.Options{})
	s.answers = [2]string{alike, alike}
	s.pool = poolcheck.Pool{Model: catalog.Model{Slug: "fable-5", ExactModel: "fable-5"}}
	in, out := decimal.RequireFromString("3"), decimal.RequireFromString("15")
	for i, protocol := range []string{first, second} {
		p := catalog.Provider{
			ID: fmt.Sprint("p", i), Protocol: catalog.Protocol(protocol), BaseURL: s.fake.URL(),
			Keys: []catalog.ProviderKey{{ID: "k1", Env: "POOL_KEY"}},
		}
		if p.Protocol == catalog.OpenAI {
			p.BaseURL += "/v1"
		}
		s.pool.Targets = append(s.pool.Targets, poolcheck.Target{Provider: p, Deployment: catalog.Deployment{
			ID: fmt.Sprint("d", i), Provider: p.ID, UpstreamModel: fmt.Sprint("upstream-", i), Prices: money.Prices{Input: &in, Output: &out},
		}})
	}
}

// poolSecrets hold one key for every provider.
type poolSecrets struct{ allSecrets }

func (poolSecrets) Lookup(context.Context, *catalog.Provider, string) (secrets.Credential, error) {
	return secrets.Credential{Key: "k"}, nil
}

func (s *poolScene) check(most money.NanoUSD) error {
	var script fakeprovider.Script
	for i, target := range s.pool.Targets {
		script.Rules = append(script.Rules, fakeprovider.Rule{Model: target.Deployment.UpstreamModel, Outcomes: strings.Split(s.answers[i], ",")})
	}
	if err := s.fake.SetScript(script); err != nil {
		return err
	}
	client := provider.New(provider.Config{Outbound: registry.Outbound(), InternalHosts: network.MustHosts("127.0.0.1")})
	defer client.Close()
	checker := poolcheck.Checker{Providers: client, Secrets: poolSecrets{}, Estimator: tokens.NewEstimator(), Now: func() time.Time { return noon }}
	var err error
	s.evidence, err = checker.Check(context.Background(), s.pool, poolcheck.Limits{MaxSpend: most, MaxAttempts: 100})
	return err
}

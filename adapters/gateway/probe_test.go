package gateway_test

import (
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/adapters/health"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// A probe that was taken for a request which a budget then refused goes back:
// otherwise an organization without money could keep a recovered route shut for
// all (H1).
func TestARefusedReservationGivesTheProbeBack_H1(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok")
	circuits := health.New(health.Config{Secrets: gatewaytest.AnySecret{}})
	b.Health = circuits
	rung := &walk.Rung{Model: "m", Deployment: &b.Objects.Deployments[0], Provider: &b.Objects.Providers[0]}
	now := time.Now()
	circuits.Observe(rung, "k1", "acme/key1", &failure.Failure{Class: failure.DeploymentGone, Status: 404}, now.Add(-time.Minute))

	b.Log.Book.Counters[gatewaytest.MonthKey()] = gatewaytest.Spent(999_999_999)
	if out := b.Chat(t.Context(), gatewaytest.Whole); out.Err == nil || out.Err.Code != apierror.InsufficientQuota {
		t.Fatalf("got %+v", out.Err)
	}
	if v := circuits.Claim(rung, "k1", walk.Ordinary, now); v.Skip != "" || !v.Probe {
		t.Errorf("the next request may not probe: %+v", v)
	}
}

package walk_test

import (
	"testing"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// A refusal by a masked deployment's limit says that it may not be shown whose it is; one
// by a limit that names nobody's route does not.
//
// Rules: X1, M13.
func TestALimitOfAMaskedDeploymentIsMasked_X1_M13(t *testing.T) {
	for scope, want := range map[string]bool{catalog.ScopeDeployment: true, catalog.ScopeModel: false} {
		req := request1(func(r *walk.Request) {
			r.Budgets = []catalog.Budget{{Scope: scope, LimitUSD: "0.00001", Per: catalog.PerDay}}
		})
		hidden := rung(0, func(r *walk.Rung) { r.Deployment.Masked = true })
		run := sim.Walk(walk.New(req, []walk.Rung{hidden}, &sim.World{}), script(nil), budget.NewBook(), noon)
		refused := run.Events[0].(request.RequestRefused)
		if refused.Scope != scope || refused.Of == "" || refused.Masked != want {
			t.Errorf("%s: %+v", scope, refused.Refusal)
		}
	}
}

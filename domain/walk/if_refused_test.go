package walk_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// TestIfRefusedChangesNothing_M16: what a refusal would say can be asked any number of
// times, before the machine is told what became of its call and after.
//
// Rules: M16.
func TestIfRefusedChangesNothing_M16(t *testing.T) {
	refusal := budget.Refusal{Check: budget.Check{Scope: "organization", Limit: 5}, Used: 5}
	begin := func() (*walk.Machine, walk.Move) {
		m := walk.New(request1(), []walk.Rung{rung(0), rung(1)}, &sim.World{})
		m.Start(noon)
		return m, m.Failed(failure.Failure{Class: failure.DeploymentGone}, walk.Report{}, noon)
	}
	m, move := begin()
	want := m.Refused(refusal, move.Say, noon)

	m, move = begin()
	ifRefused := m.IfRefused(move.Say, noon)
	for range 2 {
		if diff := cmp.Diff(want, ifRefused(refusal)); diff != "" {
			t.Fatal(diff)
		}
	}
	if served := m.Completed(serves().Report, noon.Add(time.Second)); served.Finish == nil {
		t.Errorf("%+v", served)
	}
	if diff := cmp.Diff(want, ifRefused(refusal)); diff != "" {
		t.Error(diff)
	}
}

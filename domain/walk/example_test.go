package walk_test

import (
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// A machine is told what happened and answers with what to say in the log and what
// to do. Here the first route is gone and the second serves.
func Example() {
	price := decimal.RequireFromString("3.00")
	var rungs []walk.Rung
	for i, id := range []string{"a", "b"} {
		rungs = append(rungs, walk.Rung{
			Index: i, Model: "fable-5", Root: true, Provider: &catalog.Provider{ID: id, Keys: []catalog.ProviderKey{{ID: "k1"}}},
			Deployment: &catalog.Deployment{ID: "fable-5@" + id},
		})
		rungs[i].Deployment.Prices.Input, rungs[i].Deployment.Prices.Output = &price, &price
	}
	begun := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	m := walk.New(walk.Request{
		Admitted: request.RequestAdmitted{Tenant: "acme", RequestedModel: "fable-5", CanonicalModel: "fable-5", DeadlineMS: 60_000},
		Deadline: begun.Add(time.Minute),
	}, rungs, &sim.World{})

	say(m.Start(begun))
	say(m.Failed(failure.Failure{Class: failure.DeploymentGone, Status: 404}, walk.Report{}, begun.Add(time.Second)))
	say(m.Completed(walk.Report{
		Usage: usage.Usage{Input: usage.Of(10), Output: usage.Of(20)}, FirstOutput: "text",
	}, begun.Add(2*time.Second)))

	// Output:
	// say [request_admitted attempt_reserved]
	// call fable-5@a
	// say [attempt_failed attempt_settled reservation_released attempt_reserved]
	// call fable-5@b
	// say [attempt_committed attempt_settled request_finalized]
	// finish, charged 90000 nano-USD
}

func say(move walk.Move) {
	var names []string
	for _, e := range move.Say {
		names = append(names, event.Name(e))
	}
	fmt.Println("say", names)
	switch {
	case move.Call != nil:
		fmt.Println("call", move.Call.Rung.Deployment.ID)
	case move.Finish != nil:
		fmt.Println("finish, charged", move.Finish.ChargeNanoUSD, "nano-USD")
	}
}

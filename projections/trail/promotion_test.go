package trail_test

import (
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
	"github.com/sluice-gateway/sluice/projections/trail"
)

// A trail says what a promotion paid; the counters it was taken from are ours.
//
// Rules: X1, X5, M10.
func TestATrailSaysWhatAPromotionPaid_X1_X5_M10(t *testing.T) {
	launch := &request.Gift{ID: "launch", Free: money.Free{Input: true, Output: true}}
	takes := []request.Take{{Key: "promo/acme/launch/input/overall/tokens/total/total", Held: 812}}
	stream := projectiontest.Stream(0,
		projectiontest.Admitted("acme"),
		request.AttemptReserved{Attempt: 1, Kind: request.KindFirst, Provider: "east", Model: "fable", Promotion: launch, Takes: takes},
		request.AttemptSettled{
			Attempt: 1, Basis: usage.BasisReported, Usage: usage.Usage{Input: usage.Of(800), Output: usage.Of(9)},
			Amounts: request.Amounts{List: 2_535_000, Subsidy: 2_535_000}, Promotion: launch, Takes: takes,
		},
	)
	drawn := trail.Render(build(t, stream, trail.Operator), 160, false)
	for _, want := range []string{"east fable, launch pays input and output", "settled: $0 reported, 800 in, 9 out, $0.002535 paid by launch"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("without %q:\n%s", want, drawn)
		}
	}
	for _, e := range build(t, stream, trail.Caller).Entries {
		if strings.Contains(string(e.Fields), "promo/") {
			t.Errorf("a caller sees our counters: %s", e.Fields)
		}
	}
}

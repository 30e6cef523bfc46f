package request_test

import (
	"errors"
	"testing"

	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
)

var (
	admitted  = request.RequestAdmitted{Tenant: "acme", MaxAttempts: 2}
	reserved1 = request.AttemptReserved{Attempt: 1, Reserved: 100}
	reserved2 = request.AttemptReserved{Attempt: 2, Reserved: 50}
	settled1  = request.AttemptSettled{Attempt: 1, Reserved: 100}
	settled2  = request.AttemptSettled{Attempt: 2, Reserved: 50}
	unknown1  = request.AttemptSettled{Attempt: 1, Reserved: 100, Basis: usage.BasisUnknown}
	meter1    = request.MeterHoldPlaced{Attempt: 1, Tokens: 5}
	commit1   = request.AttemptCommitted{Attempt: 1}
	final1    = request.RequestFinalized{Outcome: request.Completed, Attempts: 1}
)

// TestALifeRefusesWhatMayNotBe walks invariants 1 to 5 of the log.
func TestALifeRefusesWhatMayNotBe(t *testing.T) {
	for _, tc := range []struct {
		name   string
		given  []any
		when   any
		refuse bool
	}{
		{"a request begins with its admission", nil, admitted, false},
		{"or with its refusal", nil, request.RequestRefused{}, false},
		{"and with nothing else", nil, reserved1, true},
		{"it is admitted once", []any{admitted}, admitted, true},
		{"a refused request is over", []any{request.RequestRefused{}}, reserved1, true},
		{"attempts are numbered from 1", []any{admitted}, reserved2, true},
		{"without gaps", []any{admitted, reserved1}, reserved2, false},
		{"and not past max_attempts (W9)", []any{admitted, reserved1, reserved2}, request.AttemptReserved{Attempt: 3}, true},
		{"a hold is never negative", []any{admitted}, request.AttemptReserved{Attempt: 1, Reserved: -1}, true},
		{"nothing starts after the commit (S2)", []any{admitted, reserved1, commit1}, reserved2, true},
		{"one commit", []any{admitted, reserved1, commit1}, commit1, true},
		{"of the running attempt", []any{admitted, reserved1, reserved2}, commit1, true},
		{"an attempt settles once (I5)", []any{admitted, reserved1, settled1}, settled1, true},
		{"and only if it was reserved", []any{admitted, reserved1}, settled2, true},
		{"releasing exactly what it held", []any{admitted, reserved1}, request.AttemptSettled{Attempt: 1, Reserved: 99}, true},
		{"the end comes when nothing is held", []any{admitted, reserved1}, final1, true},
		{"then it may", []any{admitted, reserved1, settled1}, final1, false},
		{"with the right number of attempts", []any{admitted, reserved1, settled1}, request.RequestFinalized{Attempts: 2}, true},
		{"once", []any{admitted, reserved1, settled1, final1}, final1, true},
		{"and last", []any{admitted, reserved1, settled1, final1}, request.RouteSkipped{}, true},
		{"but for a meter hold (D2)", []any{admitted, reserved1, unknown1, meter1, final1}, request.MeterHoldResolved{Attempt: 1}, false},
		{"that was placed", []any{admitted, reserved1, unknown1, final1}, request.MeterHoldResolved{Attempt: 1}, true},
		{"for an attempt that there is", []any{admitted, reserved1, unknown1, meter1, final1}, request.MeterHoldResolved{}, true},
		{
			"and is resolved once",
			[]any{admitted, reserved1, unknown1, meter1, final1, request.MeterHoldResolved{Attempt: 1}},
			request.MeterHoldResolved{Attempt: 1},
			true,
		},
		{"a meter is held once", []any{admitted, reserved1, unknown1, meter1}, meter1, true},
		{"for usage that nobody knows", []any{admitted, reserved1, settled1}, meter1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var life request.Life
			for _, e := range tc.given {
				if err := life.Apply(e); err != nil {
					t.Fatalf("given: %v", err)
				}
			}
			err := life.Apply(tc.when)
			if got := errors.Is(err, request.ErrImpossible); got != tc.refuse {
				t.Errorf("refused %v (%v), want %v", got, err, tc.refuse)
			}
		})
	}
}

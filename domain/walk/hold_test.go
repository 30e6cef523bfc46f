package walk_test

import (
	"testing"

	"github.com/sluice-gateway/sluice/domain/walk"
)

// TestEveryChoiceIsHeld_M2: a caller who asks for three answers may be billed three
// times the output ceiling.
//
// Rules: M2.
func TestEveryChoiceIsHeld_M2(t *testing.T) {
	for choices, want := range map[int]int64{0: 4_500_000, 1: 4_500_000, 3: 7_500_000} {
		// 1000 tokens in at 3 USD a million, 100 tokens out for each answer at 15.
		call := firstCall(t, func(r *walk.Request) { r.Choices = choices })
		if int64(call.Reserved.Reserved) != want {
			t.Errorf("%d choices hold %d, want %d", choices, call.Reserved.Reserved, want)
		}
	}
}

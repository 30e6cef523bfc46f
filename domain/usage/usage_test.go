package usage_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/usage"
)

// Rules: M4.
func TestZeroNullAndAbsentAreThreeThings_M4(t *testing.T) {
	var u usage.Usage
	if err := json.Unmarshal([]byte(`{"input_tokens":0,"output_tokens":null}`), &u); err != nil {
		t.Fatal(err)
	}
	want := usage.Usage{Input: usage.Of(0), Output: usage.Count{State: usage.Null}}
	if diff := cmp.Diff(want, u); diff != "" {
		t.Fatal(diff)
	}
	again, err := json.Marshal(u)
	if err != nil || string(again) != `{"input_tokens":0,"output_tokens":null}` {
		t.Errorf("written as %s, %v", again, err)
	}
	if err := json.Unmarshal([]byte(`{"input_tokens":1.5}`), &u); err == nil {
		t.Error("half a token was read")
	}
}

// Rules: M4.
func TestUsable_M4(t *testing.T) {
	for _, tc := range []struct {
		u    usage.Usage
		want bool
	}{
		{usage.Usage{Input: usage.Of(1), Output: usage.Of(0)}, true},
		{usage.Usage{Input: usage.Of(0), Output: usage.Of(1)}, true},
		{usage.Usage{Input: usage.Of(0), Output: usage.Of(0)}, false},
		{usage.Usage{Input: usage.Of(5)}, false},
		{usage.Usage{}, false},
	} {
		if got := tc.u.Usable(); got != tc.want {
			t.Errorf("%+v usable: %v", tc.u, got)
		}
	}
}

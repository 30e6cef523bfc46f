package gateway

import (
	"testing"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// A connection's rung and the operator's may go to one deployment, on two accounts:
// they are two calls to a provider, and only a rung's own retries are one.
//
// Rules: I4, W6.
func TestUpstreamKeyIsARungsOwn_I4_W6(t *testing.T) {
	w := &walker{id: "request"}
	key := func(index int, owner request.Owner) string {
		return w.upstreamKey(&walk.Call{Rung: walk.Rung{Index: index, Owner: owner, Deployment: &catalog.Deployment{ID: "d"}}})
	}
	seen := map[string]bool{key(0, request.Workspace): true, key(1, request.Workspace): true, key(2, request.Operator): true}
	if len(seen) != 3 {
		t.Errorf("three rungs share keys: %v", seen)
	}
	if retry := key(0, request.Workspace); !seen[retry] {
		t.Errorf("a retry of the first rung has a key of its own, %s", retry)
	}
}

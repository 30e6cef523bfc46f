package walk

import (
	"fmt"
	"math"
	"testing"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/request"
)

func affinityRungs(n int) []Rung {
	var rungs []Rung
	for i := range n {
		rungs = append(rungs, Rung{
			Index: i, Deployment: &catalog.Deployment{ID: fmt.Sprint("d", i)}, Provider: &catalog.Provider{},
			Policy: catalog.Policy{FailoverMode: catalog.MaximizeCacheAffinity},
		})
	}
	return rungs
}

func conversationOf(n int) Request {
	return Request{Admitted: request.RequestAdmitted{Tenant: "acme", Key: "key1"}, Conversation: fmt.Sprint(n)}
}

// nobody is out of funds.
func nobody(*Rung) bool { return false }

func firstOf(rungs []Rung, conversation int) string {
	return placed(rungs, conversationOf(conversation), nobody)[0].Deployment.ID
}

// Rules: T3.
func TestConversationsSpreadAndStay_T3(t *testing.T) {
	const conversations = 3000
	rungs := affinityRungs(3)
	counts := map[string]int{}
	for c := range conversations {
		counts[firstOf(rungs, c)]++
	}
	for id, n := range counts {
		if math.Abs(float64(n)-conversations/3) > conversations/15 {
			t.Errorf("%s has %d of %d conversations", id, n, conversations)
		}
	}
}

// Rules: T3.
func TestARemovedRungMovesOnlyItsOwnConversations_T3(t *testing.T) {
	all := affinityRungs(4)
	for c := range 1000 {
		before, after := firstOf(all, c), firstOf(all[:3], c)
		if before != "d3" && before != after {
			t.Fatalf("conversation %d moved from %s to %s although its rung is still there", c, before, after)
		}
	}
}

// Rules: T3.
func TestARotatedCredentialMovesNobody_T3(t *testing.T) {
	before, after := affinityRungs(3), affinityRungs(3)
	for i := range after {
		after[i].Provider = &catalog.Provider{ID: "other", Keys: []catalog.ProviderKey{{ID: "new"}}}
	}
	for c := range 200 {
		if firstOf(before, c) != firstOf(after, c) {
			t.Fatalf("conversation %d moved", c)
		}
	}
}

// Rules: T3.
func TestWeightsAreShares_T3(t *testing.T) {
	wins := 0
	const n = 4000
	for c := range n {
		f := NewFingerprint("acme", "key1", fmt.Sprint(c))
		if f.affinity("heavy", 3) > f.affinity("light", 1) {
			wins++
		}
	}
	if math.Abs(float64(wins)-n*0.75) > n*0.03 {
		t.Errorf("a weight of 3 to 1 won %d of %d", wins, n)
	}
}

// Rules: K1.
func TestSameHintOfTwoCustomersIsTwoConversations_K1(t *testing.T) {
	for _, other := range []Fingerprint{
		NewFingerprint("globex", "key1", "chat"), NewFingerprint("acme", "key2", "chat"), NewFingerprint("acmek", "ey1", "chat"),
	} {
		if other == NewFingerprint("acme", "key1", "chat") {
			t.Error("shared")
		}
	}
}

// Rules: N19.
func TestNoRungCrossesAReference_N19(t *testing.T) {
	rungs := affinityRungs(6)
	for i := range rungs {
		rungs[i].Stage = i / 3
	}
	for c := range 200 {
		for i, r := range placed(rungs, conversationOf(c), nobody) {
			if r.Stage != i/3 {
				t.Fatalf("rung %d is at %d", r.Index, i)
			}
		}
	}
}

// Rules: T3.
func TestOtherModesKeepTheAuthoredOrder_T3(t *testing.T) {
	rungs := affinityRungs(4)
	for i := range rungs {
		rungs[i].Policy.FailoverMode = catalog.MaximizeAvailability
	}
	for c := range 50 {
		if firstOf(rungs, c) != "d0" {
			t.Fatal("reordered")
		}
	}
}

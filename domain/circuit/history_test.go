package circuit

import (
	"fmt"
	"testing"
)

// TestHistoryAtAnyMoment_H11: the state of every worker's circuits at a past
// moment is what its events up to then add up to.
//
// Rules: H11.
func TestHistoryAtAnyMoment_H11(t *testing.T) {
	route := Name{Kind: Route, Key: "r", Provider: "p", Model: "m"}
	endpoint := Name{Kind: Endpoint, Key: "e", Provider: "p"}
	log := []struct {
		at     float64
		worker string
		event  any
	}{
		{0, "w1", CircuitOpened{Name: route, Cause: serverError, Until: at(30), Trips: 1}},
		{5, "w2", CircuitOpened{Name: route, Cause: serverError, Until: at(35), Trips: 1}},
		{6, "w1", ThrottleWindowOpened{Name: route, Until: at(66)}},
		{8, "w1", CircuitOpened{Name: endpoint, Cause: refused, Until: at(68), Trips: 2}},
		{30, "w1", CircuitHalfOpened{Name: route, Cause: serverError, Until: at(90)}},
		{31, "w1", CircuitClosed{Name: route, Cause: serverError}},
		{32, "w1", struct{}{}},
	}
	state := func(moment float64) map[string]State {
		var h History
		for _, e := range log {
			if e.at <= moment {
				h.Apply(e.worker, e.event)
			}
		}
		states := map[string]State{}
		for _, v := range h.NotClosed(at(moment)) {
			states[v.Worker+" "+v.Key] = v.State
		}
		return states
	}
	for _, tc := range []struct {
		at   float64
		want map[string]State
	}{
		{1, map[string]State{"w1 r": Open}},
		{9, map[string]State{"w1 r": Open, "w2 r": Open, "w1 e": Open}},
		{30, map[string]State{"w1 r": HalfOpen, "w2 r": Open, "w1 e": Open}},
		{33, map[string]State{"w2 r": Open, "w1 e": Open}},
		{70, map[string]State{"w2 r": HalfOpen, "w1 e": HalfOpen}},
	} {
		got := state(tc.at)
		if len(got) != len(tc.want) {
			t.Errorf("at %v s: %v, want %v", tc.at, got, tc.want)
		}
		for k, s := range tc.want {
			if got[k] != s {
				t.Errorf("at %v s: %s is %q, want %q", tc.at, k, got[k], s)
			}
		}
	}
}

// TestRemembered_H11: a worker that starts takes the longest window that any
// worker had, and nothing that has ended.
//
// Rules: H11.
func TestRemembered_H11(t *testing.T) {
	var h History
	route, key := Name{Kind: Route, Key: "r"}, Name{Kind: Credential, Key: "c"}
	h.Apply("w1", CircuitOpened{Name: route, Cause: serverError, Until: at(30), Trips: 1})
	h.Apply("w2", CircuitOpened{Name: route, Cause: refused, Until: at(50), Trips: 3})
	for i := range 20 { // more than the order of a map can get right by chance
		h.Apply(fmt.Sprint("other", i), CircuitOpened{Name: route, Cause: serverError, Until: at(30 + float64(i)), Trips: 1})
	}
	h.Apply("w1", ThrottleWindowOpened{Name: key, Until: at(45)})
	h.Apply("w1", CircuitOpened{Name: Name{Kind: Endpoint, Key: "e"}, Until: at(10)})
	h.Apply("w2", CircuitOpened{Name: Name{Kind: Route, Key: "closed"}, Until: at(60)})
	h.Apply("w2", CircuitClosed{Name: Name{Kind: Route, Key: "closed"}})
	got := map[string]Circuit{}
	memories := h.Remembered(at(20))
	for _, m := range memories {
		got[m.Name.Key] = m.Circuit
	}
	if len(got) != 2 || len(memories) != 2 {
		t.Fatalf("%+v", memories)
	}
	r, c := got["r"], got["c"]
	if !r.Until().Equal(at(50)) || r.Cause() != refused || r.trips != 3 || r.State(at(20)) != Open {
		t.Errorf("route: %+v", r)
	}
	if c.State(at(20)) != Closed || !c.ThrottledUntil().Equal(at(45)) {
		t.Errorf("credential: %+v", c)
	}
	if left := h.Remembered(at(50)); len(left) != 0 {
		t.Errorf("remembered beyond its end: %+v", left)
	}
}

// TestIdentity_H1: what makes a route the same in two snapshots, and what each of
// its circuits is shared with.
//
// Rules: H1.
func TestIdentity_H1(t *testing.T) {
	base := Identity{Deployment: "d", UpstreamModel: "u", Provider: "p", Protocol: "openai", BaseURL: "https://a/v1", Credential: "k1"}
	names := func(id Identity) map[Kind]string {
		return map[Kind]string{
			Route: id.RouteName("m", false).Key, "by_key": id.ByKeyName("m", false).Key,
			Endpoint: id.EndpointName(false).Key, Credential: id.CredentialName(false).Key,
		}
	}
	for name, tc := range map[string]struct {
		change func(*Identity)
		same   []Kind
	}{
		"nothing":            {func(*Identity) {}, []Kind{Route, "by_key", Endpoint, Credential}},
		"another key":        {func(id *Identity) { id.Credential = "k2" }, []Kind{Route, Endpoint}},
		"another deployment": {func(id *Identity) { id.Deployment = "d2" }, []Kind{Endpoint, Credential}},
		"another address":    {func(id *Identity) { id.BaseURL = "https://b/v1" }, []Kind{Credential}},
		"another provider":   {func(id *Identity) { id.Provider = "p2" }, []Kind{Endpoint}},
		"another name there": {func(id *Identity) { id.UpstreamModel = "u2" }, []Kind{Endpoint, Credential}},
	} {
		t.Run(name, func(t *testing.T) {
			other := base
			tc.change(&other)
			a, b := names(base), names(other)
			same := map[Kind]bool{}
			for _, k := range tc.same {
				same[k] = true
			}
			for k := range a {
				if (a[k] == b[k]) != same[k] {
					t.Errorf("%s: same is %v, want %v", k, a[k] == b[k], same[k])
				}
			}
		})
	}
	if got := base.RouteName("m", false).Stream(); len(got) != len("circuit/route/")+2*keyBytes {
		t.Errorf("stream %q", got)
	}
}

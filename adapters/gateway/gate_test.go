package gateway

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

func yes() bool { return true }
func no() bool  { return false }

// Who waits is let in by priority and then in turn; one that leaves the line takes
// nobody's slot.
//
// Rules: N12, A7.
func TestBackgroundYieldsWhileItWaits_N12_A7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{free: 1}
		if err := g.acquire(t.Context(), yes); err != nil {
			t.Fatal(err)
		}
		var order []string
		wait := func(ctx context.Context, name string, yields func() bool) {
			go func() {
				if err := g.acquire(ctx, yields); err != nil {
					name += " left"
				}
				order = append(order, name)
			}()
			synctest.Wait()
		}
		impatient, leave := context.WithCancel(t.Context())
		wait(t.Context(), "background 1", yes)
		wait(impatient, "background 2", yes)
		wait(t.Context(), "background 3", yes)
		wait(t.Context(), "realtime 1", no)
		wait(t.Context(), "realtime 2", no)
		leave()
		synctest.Wait()
		for range 5 {
			g.release()
			synctest.Wait()
		}
		if got, want := strings.Join(order, ", "), "background 2 left, realtime 1, realtime 2, background 1, background 3"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if g.free != 1 || len(g.realtime)+len(g.yielding) != 0 {
			t.Errorf("left behind: %d free, %d waiting", g.free, len(g.realtime)+len(g.yielding))
		}
	})
}

// The clock of a request that waits is its own.
//
// Rules: A7.
func TestAWaitHasAnEnd_A7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := g.acquire(ctx, no); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// A request yields by its own priority, else by its class's, however the class is
// named; a name that means something else names no class.
//
// Rules: N9, N12.
func TestWhoYields_N9_N12(t *testing.T) {
	objects := catalog.Objects{
		Models:  []catalog.Model{{Slug: "compaction", ExactModel: "x"}},
		Tenants: []catalog.Tenant{{ID: "acme"}},
	}
	snapshot := catalog.NewSnapshot(objects)
	for _, c := range []struct {
		priority         catalog.Priority
		key, class, name string
		yields           bool
	}{
		{"", "", "", "m", false},
		{catalog.Background, "", "", "m", true},
		{catalog.Realtime, "summarize", "summarize", "class/summarize", false},
		{"", "summarize", "", "m", true},
		{"", "", "summarize", "m", true},
		{"", "", "", "class/summarize", true},
		{"", "", "", "summarize", true},
		{"", "", "", "compaction", false},
		{"", "", "", "class/compaction", true},
		{"", "", "", "class/vision", false},
	} {
		in := Incoming{
			Key: &catalog.Key{Tenant: "acme", Class: c.key}, Snapshot: snapshot,
			Controls: Controls{Priority: c.priority, Class: c.class}, Body: []byte(`{"messages":[],"model":"` + c.name + `"}`),
		}
		if got := in.yields(); got != c.yields {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

package eventstore

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// The streams of a kind come whole, the greatest name first, page by page, and no
// stream of another kind among them.
//
// Rules: R7.
func TestStreamsOfAKindAreListed_R7(t *testing.T) {
	s := openStore(t, Config{URL: pgtest.NewDatabase(t)})
	var want []string
	for n := range 7 {
		stream := fmt.Sprintf("reconciliation/%02d", n)
		mustAppend(t, s, stream, 0, 1)
		mustAppend(t, s, stream, 1, 2) // a row of its own
		want = append([]string{stream, stream, stream}, want...)
	}
	mustAppend(t, s, "reconciliations/1", 0, 1)
	mustAppend(t, s, "reconciliatiom/9", 0, 1)
	mustAppend(t, s, "worker/1", 0, 1)

	var got []string
	for before := ""; ; {
		page, err := s.ReadKind(t.Context(), "reconciliation", before, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for i, e := range page {
			if got = append(got, e.Stream); e.StreamVersion != int64(i%3+1) {
				t.Errorf("%s: version %d in place %d", e.Stream, e.StreamVersion, i)
			}
		}
		before = page[len(page)-1].Stream
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	for _, c := range [][2]string{{"request", ""}, {"tenant", ""}, {"reconciliation", "worker/1"}, {"", ""}} {
		if _, err := s.ReadKind(t.Context(), c[0], c[1], 3); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q before %q: %v", c[0], c[1], err)
		}
	}
	if none, err := s.ReadKind(t.Context(), "reconciliation", "", 0); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
}

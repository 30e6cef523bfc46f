package estimate

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestInputTokens_A6 holds every weight of the rule on its own and together.
//
// Rules: A6.
func TestInputTokens_A6(t *testing.T) {
	for name, tc := range map[string]struct {
		counts Counts
		want   int64
	}{
		"nothing":              {Counts{}, 0},
		"text":                 {Counts{TextTokens: 100}, 115},
		"rounded up":           {Counts{TextTokens: 1}, 2},
		"messages":             {Counts{Messages: 25}, 115},
		"one tool":             {Counts{Tools: 1}, 474},   // 1.15 x 412 = 473.8
		"two tools":            {Counts{Tools: 2}, 488},   // 1.15 x 424 = 487.6
		"image":                {Counts{Images: 1}, 2356}, // 2355.2
		"unknown document":     {Counts{Documents: []int64{0}}, 18842},
		"small document":       {Counts{Documents: []int64{10}}, 2356},
		"document":             {Counts{Documents: []int64{3_200_000}}, 115_000},
		"base64":               {Counts{Base64Bytes: 400}, 115},
		"part of a token":      {Counts{Base64Bytes: 1}, 1},
		"rounded once, not by": {Counts{Base64Bytes: 2, Documents: []int64{65_537}}, 2356}, // 1.15 x 2048.53125 = 2355.8
		"all": {
			Counts{TextTokens: 1000, Messages: 3, Tools: 2, Images: 1, Documents: []int64{0, 64_000}, Base64Bytes: 4000},
			26_354, // 1.15 x (1000 + 12 + 424 + 2048 + 16384 + 2048 + 1000) = 26353.4
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.counts.InputTokens(); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// TestFloorIsTextAlone_A5: what is only guessed never turns a request away.
//
// Rules: A5.
func TestFloorIsTextAlone_A5(t *testing.T) {
	c := Counts{TextTokens: 7, Messages: 9, Tools: 3, Images: 2, Documents: []int64{0}, Base64Bytes: 99}
	if got := c.FloorTokens(); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}

// TestEstimateIsBounded: more of anything is never less, nothing overflows, and
// the floor stays below.
func TestEstimateIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Counts{
			TextTokens:  rapid.Int64Range(0, 1<<32).Draw(t, "text"),
			Messages:    rapid.IntRange(0, 1<<20).Draw(t, "messages"),
			Tools:       rapid.IntRange(0, 1<<20).Draw(t, "tools"),
			Images:      rapid.IntRange(0, 1<<20).Draw(t, "images"),
			Base64Bytes: rapid.SampledFrom([]int64{-1, 0, 5, math.MaxInt64}).Draw(t, "base64"),
			Documents:   rapid.SliceOfN(rapid.SampledFrom([]int64{-1, 0, 99, math.MaxInt64}), 0, 8).Draw(t, "documents"),
		}
		input := c.InputTokens()
		if input < c.FloorTokens() || input < 0 {
			t.Fatalf("%+v: %d is below the floor", c, input)
		}
		more := c
		more.TextTokens++
		if more.InputTokens() <= input {
			t.Fatalf("%+v: one more token is not more", c)
		}
	})
}

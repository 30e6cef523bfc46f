package neutral

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/usage"
)

// Rules: S1.
func TestWhatCommits_S1(t *testing.T) {
	some, none := []byte("x"), []byte{}
	tests := []struct {
		name  string
		event Event
		want  bool
	}{
		{"text", Event{Kind: Text, Text: some}, true},
		{"empty text", Event{Kind: Text, Text: none}, false},
		{"exposed reasoning", Event{Kind: Reasoning, Text: some}, true},
		{"empty reasoning", Event{Kind: Reasoning}, false},
		{"visible refusal", Event{Kind: Refusal, Text: some}, true},
		{"tool call", Event{Kind: ToolCallStart}, true},
		{"tool arguments", Event{Kind: ToolCallDelta, Text: some}, true},
		{"empty tool arguments", Event{Kind: ToolCallDelta}, false},
		{"image", Event{Kind: Image}, true},
		{"structure", Event{Kind: Structure}, true},
		{"role chunk", Event{Kind: Start}, false},
		{"ping", Event{Kind: Ping}, false},
		{"usage", Event{Kind: Usage}, false},
		{"stop", Event{Kind: Stop, Stop: StopEnd}, false},
		{"withheld reasoning and the unknown", Event{Kind: Opaque, Text: some}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.event.Semantic(); got != tt.want {
				t.Errorf("Semantic() = %v, want %v", got, tt.want)
			}
		})
	}
}

// Rules: W11.
func TestWhatResetsTheIdleLimit_W11(t *testing.T) {
	for kind := Opaque; kind <= Ping; kind++ {
		c := Chunk{Events: []Event{{Kind: kind, Text: []byte("x")}}}
		want := c.Semantic() || kind == Stop || kind == ToolCallEnd
		if got := c.Generation(); got != want {
			t.Errorf("%v: Generation() = %v, want %v", kind, got, want)
		}
	}
}

// Rules: S6.
func TestTally_S6(t *testing.T) {
	var tally Tally
	for _, c := range []Chunk{
		{Events: []Event{{Kind: Start}, {Kind: Text}}},
		{Events: []Event{{Kind: Usage, Usage: usage.Usage{Input: usage.Of(10), Output: usage.Of(1)}}}},
		{Events: []Event{{Kind: Reasoning, Text: []byte("hm")}}},
		{Events: []Event{{Kind: Text, Text: []byte("漢")}}},
		{Events: []Event{{Kind: ToolCallStart, Tool: Tool{Name: "f"}}, {Kind: ToolCallDelta, Text: []byte("{}")}}},
		{Events: []Event{{Kind: Stop, Stop: StopToolCalls}, {Kind: Usage, Usage: usage.Usage{Output: usage.Of(7)}}}},
	} {
		tally.Add(&c)
	}
	want := Tally{
		OutputBytes: 8, OutputEvents: 4, ToolCalls: 1, FirstOutput: Reasoning, Stop: StopToolCalls, HasUsage: true,
		Usage: usage.Usage{Input: usage.Of(10), Output: usage.Of(7)},
	}
	if diff := cmp.Diff(want, tally); diff != "" {
		t.Error(diff)
	}
	if !tally.Committed() || !tally.Finished() {
		t.Error("neither committed nor finished")
	}
}

// Zero, null and absent are three things: a later zero replaces a number, a later
// null or absence does not.
//
// Rules: M4.
func TestLastUsageWins_M4(t *testing.T) {
	null := usage.Count{State: usage.Null}
	tests := []struct{ older, newer, want usage.Count }{
		{usage.Of(5), usage.Of(7), usage.Of(7)},
		{usage.Of(5), usage.Of(0), usage.Of(0)},
		{usage.Of(5), null, usage.Of(5)},
		{usage.Of(5), usage.Count{}, usage.Of(5)},
		{usage.Count{}, null, null},
		{null, usage.Count{}, null},
		{null, usage.Of(0), usage.Of(0)},
	}
	for _, tt := range tests {
		got := LastUsage(usage.Usage{Output: tt.older}, usage.Usage{Output: tt.newer})
		if got.Output != tt.want {
			t.Errorf("%+v then %+v = %+v, want %+v", tt.older, tt.newer, got.Output, tt.want)
		}
	}
}

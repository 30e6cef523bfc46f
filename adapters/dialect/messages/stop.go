package messages

import (
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// stopReasons are the reasons that end an answer well. What is not here fails the
// attempt.
var stopReasons = map[string]neutral.StopReason{
	"end_turn":      neutral.StopEnd,
	"stop_sequence": neutral.StopEnd,
	"tool_use":      neutral.StopToolCalls,
	"max_tokens":    neutral.StopLength,
	"refusal":       neutral.StopRefusal,
	// The provider's own tools took too long or the context was compacted: the caller
	// sends the answer back to go on.
	"pause_turn":                    neutral.StopEnd,
	"compaction":                    neutral.StopEnd,
	"model_context_window_exceeded": neutral.StopLength,
}

// stop places a stop reason. An end on a tool call is tool_use: an agent that reads
// end_turn does not run the tool (P11). A call in the middle of an answer is one that
// the provider's own code asked for, and was answered to.
func stop(reason string, endsInCall bool) (neutral.StopReason, *failure.Failure) {
	s, ok := stopReasons[reason]
	switch {
	case !ok:
		return "", payload("stop_reason_unknown")
	case endsInCall && s == neutral.StopEnd && reason != "pause_turn":
		return neutral.StopToolCalls, nil
	}
	return s, nil
}

// stopWord is the reason as this dialect spells it. A refusal in words that ended as
// usual where it came from is a reason of its own here: clients look at nothing else.
func stopWord(s neutral.StopReason, first neutral.Kind, sawTool bool) string {
	switch {
	case s == neutral.StopLength:
		return "max_tokens"
	case first == neutral.Refusal:
		return "refusal"
	case s == neutral.StopRefusal, s == neutral.StopContentFilter:
		return "refusal"
	case s == neutral.StopToolCalls, sawTool:
		return "tool_use"
	default:
		return "end_turn"
	}
}

// payload is a 2xx reply that is not what the dialect says. The work behind it may
// have been done (W13).
func payload(code string) *failure.Failure {
	return &failure.Failure{Class: failure.BadPayload, Code: code, PossiblyBilled: true}
}

func cutCall() *failure.Failure {
	return &failure.Failure{Class: failure.StreamTruncated, Code: "tool_call_cut", PossiblyBilled: true}
}

// empty reports whether an answer that has ended has nothing in it (W8). One that
// ended for its length or by refusal says why it is empty: that is its answer.
func empty(t *neutral.Tally) bool {
	return !t.Committed() && t.Stop != neutral.StopLength && t.Stop != neutral.StopRefusal
}

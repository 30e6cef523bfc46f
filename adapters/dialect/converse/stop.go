package converse

import (
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// stopReasons are the reasons that end an answer well. What is not here fails the
// attempt.
var stopReasons = map[string]neutral.StopReason{
	"end_turn":                      neutral.StopEnd,
	"stop_sequence":                 neutral.StopEnd,
	"tool_use":                      neutral.StopToolCalls,
	"max_tokens":                    neutral.StopLength,
	"model_context_window_exceeded": neutral.StopLength,
	"guardrail_intervened":          neutral.StopContentFilter,
	"content_filtered":              neutral.StopContentFilter,
	"refusal":                       neutral.StopRefusal,
}

// brokenReasons are reasons by which a model says that its answer is not whole.
var brokenReasons = map[string]bool{"malformed_model_output": true, "malformed_tool_use": true}

// stopOf places a stop reason. An end after a tool call is tool_calls: an agent that
// reads stop does not run the tool.
func stopOf(reason string, calls int) (neutral.StopReason, *failure.Failure) {
	stop, ok := stopReasons[reason]
	switch {
	case brokenReasons[reason]:
		return "", &failure.Failure{Class: failure.StreamErrorEvent, Code: "stop_reason_error"}
	case !ok:
		return "", payload("stop_reason_unknown")
	case calls > 0 && stop == neutral.StopEnd:
		return neutral.StopToolCalls, nil
	}
	return stop, nil
}

// empty reports whether an answer that has ended has nothing in it (W8). One that
// ended for its length, for a filter or with a refusal says why it is empty: that is
// its answer.
func empty(t *neutral.Tally) bool {
	return !t.Committed() && (t.Stop == neutral.StopEnd || t.Stop == neutral.StopToolCalls || t.Stop == neutral.StopNone)
}

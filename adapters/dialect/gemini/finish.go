package gemini

import (
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// finishReasons are the reasons that end an answer well. What is neither here nor
// below fails the attempt.
var finishReasons = map[string]neutral.StopReason{
	"STOP":       neutral.StopEnd,
	"MAX_TOKENS": neutral.StopLength,

	"SAFETY":                   neutral.StopContentFilter,
	"RECITATION":               neutral.StopContentFilter,
	"LANGUAGE":                 neutral.StopContentFilter,
	"BLOCKLIST":                neutral.StopContentFilter,
	"PROHIBITED_CONTENT":       neutral.StopContentFilter,
	"SPII":                     neutral.StopContentFilter,
	"MODEL_ARMOR":              neutral.StopContentFilter,
	"IMAGE_SAFETY":             neutral.StopContentFilter,
	"IMAGE_PROHIBITED_CONTENT": neutral.StopContentFilter,
	"IMAGE_RECITATION":         neutral.StopContentFilter,
}

// brokenReasons are reasons by which Google says that an answer is of no use: half a
// call, a call of a tool that does not exist, an end that it cannot explain. Another
// try often gives a good one.
var brokenReasons = map[string]string{
	"MALFORMED_FUNCTION_CALL":   "malformed_function_call",
	"MALFORMED_RESPONSE":        "malformed_response",
	"UNEXPECTED_TOOL_CALL":      "unexpected_tool_call",
	"TOO_MANY_TOOL_CALLS":       "too_many_tool_calls",
	"MISSING_THOUGHT_SIGNATURE": "missing_thought_signature",
	"NO_IMAGE":                  "no_image",
	"IMAGE_OTHER":               "image_other",
	"OTHER":                     "finish_reason_other",
}

// unspecified is the reason of an answer that is still running, where one is written.
const unspecified = "FINISH_REASON_UNSPECIFIED"

// finish places a finish reason. STOP after a call is tool_calls, also when it comes
// in a later, empty chunk: an agent that reads stop does not run the tool.
func finish(reason string, sawTool bool) (neutral.StopReason, *failure.Failure) {
	if code, ok := brokenReasons[reason]; ok {
		return "", &failure.Failure{Class: failure.StreamErrorEvent, Code: code, PossiblyBilled: true}
	}
	stop, ok := finishReasons[reason]
	switch {
	case !ok:
		return "", payload("finish_reason_unknown")
	case sawTool && stop == neutral.StopEnd:
		return neutral.StopToolCalls, nil
	}
	return stop, nil
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
// ended for its length or for a filter says why it is empty: that is its answer.
func empty(t *neutral.Tally) bool {
	return !t.Committed() && t.Stop != neutral.StopLength && t.Stop != neutral.StopContentFilter
}

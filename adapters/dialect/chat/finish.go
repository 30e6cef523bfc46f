package chat

import (
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// finishReasons are the reasons that end an answer well, of all providers that
// speak this dialect. What is not here fails the attempt.
var finishReasons = map[string]neutral.StopReason{
	"stop":           neutral.StopEnd,
	"length":         neutral.StopLength,
	"tool_calls":     neutral.StopToolCalls,
	"function_call":  neutral.StopToolCalls,
	"content_filter": neutral.StopContentFilter,

	"eos":           neutral.StopEnd, // Together
	"eos_token":     neutral.StopEnd, // TGI
	"stop_sequence": neutral.StopEnd,
	"end_turn":      neutral.StopEnd,
	"model_length":  neutral.StopLength, // Mistral
	"max_tokens":    neutral.StopLength,
	"tool_use":      neutral.StopToolCalls,
	"sensitive":     neutral.StopContentFilter, // Zhipu
	"safety":        neutral.StopContentFilter,
	"STOP":          neutral.StopEnd, // Gemini's compatible endpoint has let its own words through
	"MAX_TOKENS":    neutral.StopLength,
	"SAFETY":        neutral.StopContentFilter,
}

// brokenReasons are reasons by which a provider says that its answer broke off.
var brokenReasons = map[string]bool{
	"error":                        true,
	"abort":                        true, // vLLM
	"cancelled":                    true,
	"insufficient_system_resource": true, // DeepSeek
	"network_error":                true, // Zhipu
}

// clientReasons are the reasons that official clients know (P11). function_call is
// the old form of tool_calls and stays with those who still use it.
var clientReasons = map[string]bool{
	"stop": true, "length": true, "tool_calls": true, "content_filter": true, "function_call": true,
}

// finish places a finish reason. A stop after a tool call is tool_calls, also when
// it comes in a later, empty chunk: an agent that reads stop does not run the tool.
func finish(reason string, sawTool bool) (neutral.StopReason, *failure.Failure) {
	stop, ok := finishReasons[reason]
	switch {
	case brokenReasons[reason]:
		return "", &failure.Failure{Class: failure.StreamErrorEvent, Code: "finish_reason_error"}
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

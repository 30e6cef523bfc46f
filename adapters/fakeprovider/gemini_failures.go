package fakeprovider

import (
	"encoding/json"
	"strconv"
	"strings"
)

// googleError writes Google's error envelope. details are its members, written out.
func googleError(code int, status, message string, details ...string) wording {
	b := strconv.AppendInt([]byte(`{"error":{"code":`), int64(code), 10)
	b = append(b, `,"message":`...)
	b = appendString(b, message)
	b = append(b, `,"status":`...)
	b = appendString(b, status)
	if len(details) > 0 {
		b = append(b, `,"details":[`+strings.Join(details, ",")+"]"...)
	}
	return wording{code, string(append(b, "}}"...))}
}

// errorInfo is the detail that names a reason.
func errorInfo(reason string) string {
	return `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"` + reason + `","domain":"googleapis.com"}`
}

const (
	retryInfo    = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}`
	quotaFailure = `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}`
)

// geminiFailures are Google's words.
var geminiFailures = failureTable{
	"server_error":    {"": googleError(500, "INTERNAL", "An internal error has occurred. Please retry or report in the troubleshooting guide.")},
	"bad_gateway":     chatFailures["bad_gateway"],
	"gateway_timeout": {"": googleError(504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete.")},
	"unavailable":     {"": googleError(503, "UNAVAILABLE", "The service is currently unavailable.")},
	"overloaded":      {"": googleError(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")},
	"throttled": {
		"":           googleError(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
		"retry-info": googleError(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details. Please retry in 34.4s.", quotaFailure, retryInfo),
	},
	"auth":          {"": googleError(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", errorInfo("API_KEY_INVALID"))},
	"forbidden":     {"": googleError(403, "PERMISSION_DENIED", "Permission denied on resource project fake.", errorInfo("IAM_PERMISSION_DENIED"))},
	"model_missing": {"": googleError(404, "NOT_FOUND", "models/$MODEL is not found for API version v1beta, or is not supported for generateContent.")},
	"timeout":       {"": googleError(408, "DEADLINE_EXCEEDED", "Request timed out.")},
	"invalid":       {"": googleError(400, "INVALID_ARGUMENT", "Unable to submit request because it has a temperature value of 9.", `{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"generation_config.temperature"}]}`)},
	"too_large":     {"": googleError(413, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes.")},
	"plain":         {"": googleError(400, "INVALID_ARGUMENT", "The request failed.")},
	"redirect":      {"": {302, ""}},
	"context":       {"": googleError(400, "INVALID_ARGUMENT", "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).")},
	"policy":        {"": googleError(400, "INVALID_ARGUMENT", "The prompt could not be submitted. It contains words that violate Google's Responsible AI practices.")},
	"funding": {
		"":        googleError(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing."),
		"billing": googleError(403, "PERMISSION_DENIED", "This API method requires billing to be enabled.", errorInfo("BILLING_DISABLED")),
		"cap":     googleError(429, "RESOURCE_EXHAUSTED", "Your project has exceeded its monthly spending cap."),
	},
}

func (gemini) failure(f failure, call callFacts) (int, []byte) {
	w := wordingOf(geminiFailures, f.kind, f.form)
	status := w.status
	if f.status != 0 {
		status = f.status
	}
	body := []byte(strings.ReplaceAll(w.body, "$MODEL", safeName(call.model)))
	if f.relay {
		body = relayed(status, body)
	}
	return status, body
}

// errorEvent is the error envelope as one event of the stream. Bare, it stands in a
// list, as it does in a stream without SSE.
func (gemini) errorEvent(f failure, a *answer, bare bool) event {
	if f.kind == finishKind {
		return event{data: appendGeminiTail(appendGeminiHead(nil), a, "error", 0, 0, false)}
	}
	_, body := gemini{}.failure(f, callFacts{model: a.model})
	if !json.Valid(body) {
		body = []byte(`{"error":` + string(errorMember(body)) + `}`)
	}
	if bare {
		body = []byte("[" + string(body) + "]")
	}
	return event{data: body}
}

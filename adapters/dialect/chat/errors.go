package chat

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
)

// Error is a whole error reply.
func (Inbound) Error(e *apierror.Error) (int, http.Header, []byte) {
	return e.HTTPStatus(), e.Header(), errorBody(e)
}

// errorObject is OpenAI's error with our own fields beside it. The four that are
// theirs are always there; param and code may be null.
type errorObject struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`

	RequestID string `json:"request_id,omitempty"`
	Retryable bool   `json:"retryable"`
	Scope     string `json:"scope,omitempty"`
	Limit     *int64 `json:"limit,omitempty"`
	Used      *int64 `json:"used,omitempty"`
	Unit      string `json:"unit,omitempty"`
	ResetsAt  string `json:"resets_at,omitempty"`
	// RetryAfterMS is the true time; the header is capped.
	RetryAfterMS int64              `json:"retry_after_ms,omitempty"`
	Attempts     []apierror.Attempt `json:"attempts,omitempty"`
	// Provider is the provider's own code and type for the caller's own fault (D7).
	Provider *providerWord `json:"provider_error,omitempty"`
}

type providerWord struct {
	Status int    `json:"status,omitempty"`
	Type   string `json:"type,omitempty"`
	Code   string `json:"code,omitempty"`
}

func errorBody(e *apierror.Error) []byte {
	o := errorObject{
		Message: e.Text(), Type: apierror.Of(e.Code).OpenAI, Code: string(e.Code),
		RequestID: e.RequestID, Retryable: e.Retryable,
		Scope: e.Scope, Limit: e.Limit, Used: e.Used, Unit: e.Unit,
		RetryAfterMS: e.RetryAfter.Milliseconds(), Attempts: e.Attempts,
	}
	if !e.ResetsAt.IsZero() {
		o.ResetsAt = e.ResetsAt.UTC().Format(time.RFC3339)
	}
	param := e.Param
	if e.Relay != nil {
		o.Provider = &providerWord{Status: e.Relay.Status, Type: e.Relay.Type, Code: e.Relay.Code}
		if param == "" {
			param = e.Relay.Param
		}
	}
	if param != "" {
		o.Param = &param
	}
	// Strings, numbers and slices of them: there is nothing that could fail.
	body, _ := json.Marshal(struct {
		Error errorObject `json:"error"`
	}{o})
	return body
}

package messages

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
)

const (
	// statusOverloaded is what clients of this dialect know as overload.
	statusOverloaded = 529
	typeOverloaded   = "overloaded_error"
)

// Error is a whole error reply. A walk that found every route closed is overload
// here (P11).
func (Inbound) Error(e *apierror.Error) (int, http.Header, []byte) {
	status := e.HTTPStatus()
	if overloaded(e) {
		status = statusOverloaded
	}
	return status, e.Header(), errorBody(e)
}

func overloaded(e *apierror.Error) bool {
	return e.Code == apierror.UpstreamExhausted && e.HTTPStatus() == http.StatusServiceUnavailable
}

// errorEnvelope is Anthropic's error with our own fields beside its type and message.
type errorEnvelope struct {
	Type      string      `json:"type"`
	Error     errorObject `json:"error"`
	RequestID string      `json:"request_id,omitempty"`
}

type errorObject struct {
	Type    string `json:"type"`
	Message string `json:"message"`

	Code      string `json:"code"`
	RequestID string `json:"request_id,omitempty"`
	Param     string `json:"param,omitempty"`
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
		Type: apierror.Of(e.Code).Anthropic, Message: e.Text(), Code: string(e.Code),
		RequestID: e.RequestID, Param: e.Param, Retryable: e.Retryable,
		Scope: e.Scope, Limit: e.Limit, Used: e.Used, Unit: e.Unit,
		RetryAfterMS: e.RetryAfter.Milliseconds(), Attempts: e.Attempts,
	}
	switch {
	case overloaded(e):
		o.Type = typeOverloaded
	case e.HTTPStatus() == http.StatusNotFound:
		o.Type = apierror.Of(apierror.ModelNotFound).Anthropic
	case e.HTTPStatus() == http.StatusRequestEntityTooLarge:
		o.Type = apierror.Of(apierror.RequestTooLarge).Anthropic
	}
	if !e.ResetsAt.IsZero() {
		o.ResetsAt = e.ResetsAt.UTC().Format(time.RFC3339)
	}
	if e.Relay != nil {
		o.Provider = &providerWord{Status: e.Relay.Status, Type: e.Relay.Type, Code: e.Relay.Code}
		if o.Param == "" {
			o.Param = e.Relay.Param
		}
	}
	// Strings, numbers and slices of them: there is nothing that could fail.
	body, _ := json.Marshal(errorEnvelope{Type: "error", Error: o, RequestID: e.RequestID})
	return body
}

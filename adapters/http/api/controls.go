package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// maxIdempotencyKey bounds a caller's key; the field's usual limit.
const maxIdempotencyKey = 255

// maxConversation bounds the part of a conversation's name that is looked at.
const maxConversation = 1024

// maxClientID bounds the ids that a caller gives us to keep.
const maxClientID = 128

// controlsOf reads the request headers of the contract. A value that cannot be
// read is refused: a limit that was silently ignored would be worse than none.
func controlsOf(h http.Header) (gateway.Controls, *apierror.Error) {
	c := gateway.Controls{Fallback: walk.FallbackAny, ClientRequestID: clientID(h), Correlation: traceID(h)}
	if v := h.Get("X-Sluice-Fallback"); v != "" {
		switch f := walk.Fallback(v); f {
		case walk.FallbackAny, walk.FallbackSameModel, walk.FallbackNone:
			c.Fallback = f
		default:
			return c, badHeader("x-sluice-fallback", "any, same-model or none")
		}
	}
	c.Class = h.Get("X-Sluice-Class")
	switch p := catalog.Priority(h.Get("X-Sluice-Priority")); p {
	case "", catalog.Realtime, catalog.Background:
		c.Priority = p
	default:
		return c, badHeader("x-sluice-priority", "realtime or background")
	}
	switch v := h.Get("X-Sluice-Hold"); v {
	case "":
	case "complete":
		c.Hold = true
	default:
		return c, badHeader("x-sluice-hold", "complete")
	}
	// A hint that is too long is shortened, not refused: it only has to be the same
	// from turn to turn.
	c.Conversation = h.Get("X-Sluice-Conversation")
	c.Conversation = c.Conversation[:min(len(c.Conversation), maxConversation)]
	var err *apierror.Error
	if c.MaxAttempts, err = positive(h, "X-Sluice-Max-Attempts"); err != nil {
		return c, err
	}
	ms, err := positive(h, "X-Sluice-Deadline-Ms")
	if err != nil {
		return c, err
	}
	c.Deadline = time.Duration(ms) * time.Millisecond
	if c.IdempotencyKey = h.Get("Idempotency-Key"); len(c.IdempotencyKey) > maxIdempotencyKey {
		return c, badHeader("idempotency-key", fmt.Sprintf("at most %d characters", maxIdempotencyKey))
	}
	c.ClientRetry, _ = strconv.Atoi(h.Get("X-Stainless-Retry-Count"))
	return c, nil
}

// positive reads a header that may only lower a limit; 0 when it is not sent.
func positive(h http.Header, name string) (int, *apierror.Error) {
	v := h.Get(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n < 1 {
		return 0, badHeader(strings.ToLower(name), "a whole number above 0")
	}
	return int(n), nil
}

func badHeader(name, want string) *apierror.Error {
	e := apierror.New(apierror.InvalidRequest)
	e.Message = "The header " + name + " must be " + want + "."
	e.Param = name
	return e
}

// clientID is the caller's own request id, kept beside ours and never as ours.
// What is no printable ASCII is dropped: it would travel into logs.
func clientID(h http.Header) string {
	for _, name := range []string{"X-Request-Id", "X-Client-Request-Id"} {
		if v := h.Get(name); v != "" && len(v) <= maxClientID && printable(v) {
			return v
		}
	}
	return ""
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// traceID is the trace id of a W3C traceparent.
func traceID(h http.Header) string {
	parts := strings.Split(h.Get("Traceparent"), "-")
	if len(parts) == 4 && len(parts[1]) == 32 && printable(parts[1]) {
		return parts[1]
	}
	return ""
}

// maxFlags bounds the list of beta flags that is read.
const maxFlags = 64

// flagsOf reads what goes on to a provider of the caller's own dialect, flag by flag
// so that a destination can have an allow list (P11, Z4).
func flagsOf(h http.Header) dialect.Flags {
	f := dialect.Flags{AnthropicVersion: h.Get("Anthropic-Version")}
	for _, line := range h.Values("Anthropic-Beta") {
		for flag := range strings.SplitSeq(line, ",") {
			if flag = strings.TrimSpace(flag); flag != "" && len(f.AnthropicBeta) < maxFlags {
				f.AnthropicBeta = append(f.AnthropicBeta, flag)
			}
		}
	}
	return f
}

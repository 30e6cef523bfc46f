package webhooks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/webhook"
)

const (
	// maxAnswer is what is read of an answer, so that its connection can be used again.
	// A longer one costs the connection.
	maxAnswer = 16 << 10
	userAgent = "Sluice-Webhooks/1"
)

// result is how an attempt ended; an empty cause is success.
type result struct {
	cause      webhook.Cause
	status     int
	retryAfter time.Duration
}

// post makes one attempt.
func (d *Deliverer) post(ctx context.Context, m message, w catalog.Webhook) result {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	if Refuses(w.URL, d.Opened) {
		return result{cause: webhook.CauseAddress}
	}
	secret, err := d.Secret(ctx, m.Tenant, w)
	if err != nil {
		return result{cause: webhook.CauseSecret}
	}
	key, err := webhook.Key(secret.Reveal())
	if err != nil {
		return result{cause: webhook.CauseSecret}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(m.Body))
	if err != nil {
		return result{cause: webhook.CauseConnect} // validated when it was written
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	for name, value := range webhook.Sign(key, m.ID, d.Now(), m.Body) {
		req.Header.Set(name, value)
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return result{cause: causeOf(ctx, err)}
	}
	defer func() { _ = resp.Body.Close() }()
	// The status has said everything: an answer that breaks off or drips changes nothing.
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
	return result{
		cause: webhook.Answered(resp.StatusCode), status: resp.StatusCode, retryAfter: retryAfter(resp.Header),
	}
}

// Refuses reports whether nothing is posted to an address because of what it says: it
// leads into the own network, or what is sent there could be read on its way, and opened
// does not open its host (Z1). What a name resolves to the guard sees when it dials.
func Refuses(address string, opened network.Hosts) bool {
	return network.Inside(address, opened) || !strings.HasPrefix(strings.ToLower(address), "https:") && !opened.Opens(address)
}

// causeOf names what ended an attempt without an answer. The error itself may hold the
// address, and so a token in it: it is kept nowhere.
func causeOf(ctx context.Context, err error) webhook.Cause {
	var refused *network.RefusedError
	var dial *net.OpError
	var timeout net.Error
	switch {
	case errors.As(err, &refused):
		return webhook.CauseAddress
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return webhook.CauseTimeout
	case errors.As(err, &dial) && dial.Op == "dial":
		return webhook.CauseConnect
	}
	return webhook.CauseBroken
}

// retryAfter is what the receiver asks for, in whole seconds; 0 for anything else.
func retryAfter(h http.Header) time.Duration {
	const most = 1 << 20 // seconds; webhook.Next bounds it further
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, most)) * time.Second
}

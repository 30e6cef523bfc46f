package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/domain/failure"
)

// maxErrorBody is how much of an error's body is read. Providers' errors are a few
// hundred bytes; a page of HTML is cut.
const maxErrorBody = 64 << 10

// attempt is one call's clock and fate: whichever timer ends it first says why.
type attempt struct {
	call   Call
	limits Limits
	now    func() time.Time

	ctx    context.Context
	cancel context.CancelCauseFunc
	// wrote is set once any of the request may have reached the provider. Before it
	// nothing can have been billed (W13).
	wrote atomic.Bool

	connect, firstByte, firstOutput, whole *time.Timer
}

// errClosed is the cause of an attempt that its owner closed.
var errClosed = errors.New("provider: reply closed")

func newAttempt(ctx context.Context, call Call, now func() time.Time) *attempt {
	a := &attempt{call: call, limits: call.Limits.withDefaults(), now: now}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.connect = a.arm(a.limits.Connect, failure.ConnectError, "connect_timeout")
	if call.Stream {
		a.firstByte = a.arm(a.limits.FirstByte, failure.TimeoutFirstByte, "first_byte")
		if a.limits.FirstOutput > 0 {
			a.firstOutput = a.arm(a.limits.FirstOutput, failure.TimeoutAttempt, "first_output")
		}
	} else {
		a.whole = a.arm(a.limits.Whole, failure.TimeoutFirstByte, "whole_answer")
	}
	return a
}

// arm starts a timer that ends the attempt. It is a timer and not a check after a
// read: a read that never returns is just what it is for (W11).
func (a *attempt) arm(d time.Duration, class failure.Class, code string) *time.Timer {
	return time.AfterFunc(d, func() { a.cancel(&failure.Failure{Class: class, Code: code}) })
}

func stop(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

// end frees the attempt's timers and its connection.
func (a *attempt) end() {
	stop(a.connect)
	stop(a.firstByte)
	stop(a.firstOutput)
	stop(a.whole)
	a.cancel(errClosed)
}

func (a *attempt) send(rt http.RoundTripper, out dialect.Outbound, up *dialect.Upstream) (*Reply, *failure.Failure) {
	if f := a.authorize(rt, out, up); f != nil {
		a.end()
		return nil, f
	}
	trace := &httptrace.ClientTrace{
		// net/http takes another connection only when nothing was written on the first.
		GetConn:      func(string) { a.wrote.Store(false) },
		GotConn:      func(httptrace.GotConnInfo) { stop(a.connect) },
		WroteHeaders: func() { a.wrote.Store(true) },
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(a.ctx, trace), up.Method, up.URL, bytes.NewReader(up.Body))
	if err != nil {
		a.end()
		return nil, &failure.Failure{Class: failure.DeploymentGone, Code: "request_not_buildable"}
	}
	req.Header = up.Header
	notReplayable(req.Header)

	// RoundTrip, not Client.Do: a redirect would carry the credential and the prompt
	// to an address that nobody configured (Z1).
	resp, err := rt.RoundTrip(req)
	if err != nil {
		f := a.lost(err)
		a.end()
		return nil, f
	}
	resp.Body = decoded(resp)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, a.refused(out, resp)
	}
	r := &Reply{attempt: a, out: out, status: resp.StatusCode, body: resp.Body}
	if f := r.open(); f != nil {
		return nil, f
	}
	return r, nil
}

// authorize asks for the credential of a dialect that needs one made, within the time
// for a connection: it is a part of coming to talk to the provider.
func (a *attempt) authorize(rt http.RoundTripper, out dialect.Outbound, up *dialect.Upstream) *failure.Failure {
	by, ok := out.(dialect.Authorizer)
	if !ok {
		return nil
	}
	f := by.Authorize(a.ctx, rt, up, a.call.Secret)
	if ended := a.ended(); ended != nil {
		return ended
	}
	return f
}

// notReplayable keeps net/http from sending a request twice on its own: it does so
// after a lost reply when it finds an idempotency key, spelled exactly like this.
// Each call that a provider sees is an attempt of ours. The name of a header has no
// case to the provider.
func notReplayable(h http.Header) {
	const name = "Idempotency-Key"
	if key := h[name]; key != nil {
		delete(h, name)
		h[strings.ToLower(name)] = key
	}
}

// refused reads an error's body, as far as it comes in time, and names it (W4).
func (a *attempt) refused(out dialect.Outbound, resp *http.Response) *failure.Failure {
	defer a.end()
	defer resp.Body.Close()
	stop(a.firstByte)
	stop(a.firstOutput)
	// What was read before a stall still says more than the status alone.
	stall := a.arm(a.limits.ErrorBody, failure.ServerError, "error_body_stalled")
	defer stall.Stop()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if f := a.ended(); f != nil && f.Code != "error_body_stalled" {
		return f
	}
	f := out.Classify(dialect.Refusal{Status: resp.StatusCode, Header: resp.Header, Body: body, Now: a.now()})
	return &f
}

// lost names the loss of a connection.
func (a *attempt) lost(err error) *failure.Failure {
	if f := a.ended(); f != nil {
		return f
	}
	if !a.wrote.Load() {
		if refused, ok := errors.AsType[*network.RefusedError](err); ok {
			return baseURLRefused(refused)
		}
		return &failure.Failure{Class: failure.ConnectError, Code: connectCode(err)}
	}
	return &failure.Failure{Class: failure.StreamTruncated, Code: "connection_lost", PossiblyBilled: true}
}

// baseURLRefused is a connection that the guard did not let us make (Z1). Routes that
// it refuses by what their address says are skipped before they come to this.
func baseURLRefused(e *network.RefusedError) *failure.Failure {
	code := "inside"
	if e.Addr.IsValid() {
		code = "resolved_inside"
	}
	return &failure.Failure{Class: failure.BaseURLRefused, Code: code}
}

// ended is why the attempt's context is over, or nil while it is not.
func (a *attempt) ended() *failure.Failure {
	cause := context.Cause(a.ctx)
	switch {
	case cause == nil:
		return nil
	case errors.Is(cause, context.DeadlineExceeded):
		return &failure.Failure{Class: failure.DeadlineExceeded, PossiblyBilled: a.wrote.Load()}
	}
	if f, ok := errors.AsType[*failure.Failure](cause); ok {
		named := *f
		named.PossiblyBilled = a.wrote.Load() && f.Class != failure.ConnectError
		return &named
	}
	return &failure.Failure{Class: failure.ClientCancelled, PossiblyBilled: a.wrote.Load()}
}

// connectCode is our word for how a connection was not made.
func connectCode(err error) string {
	var (
		dns     *net.DNSError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		verify  *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
	)
	switch {
	case errors.As(err, &dns):
		return "dns"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.As(err, &record), errors.As(err, &alert), errors.As(err, &verify), errors.As(err, &unknown):
		return "tls"
	default:
		return "not_connected"
	}
}

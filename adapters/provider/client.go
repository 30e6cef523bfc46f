package provider

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
)

// The limits of the shared pool of connections.
const (
	// maxIdlePerHost keeps a burst's connections for the next one: with the default
	// of 2, hundreds of concurrent streams would dial anew for almost every call.
	maxIdlePerHost = 512
	// maxIdle bounds all hosts together, one file descriptor each.
	maxIdle = 2048
	// idleTimeout ends a connection before the usual 60 to 120 s of load balancers
	// does, so that few calls meet one that has just died.
	idleTimeout = 50 * time.Second
	// Every connection keeps its buffers, idle or streaming (S9). A prompt larger than
	// the one passes it by with a second write; a token's chunk is some 300 bytes of the
	// other, and twice its size moved streams no faster.
	writeBuffer = 4 << 10
	readBuffer  = 4 << 10
	// maxHeaderBytes is far above what providers send.
	maxHeaderBytes = 256 << 10
	// dialTimeout bounds a dial that outlives the call it was made for: net/http
	// finishes it for the next one. Limits.Connect is what a call waits.
	dialTimeout = 10 * time.Second
)

// Config is how a Client is set up.
type Config struct {
	// Outbound has the dialect of each protocol that is served.
	Outbound map[catalog.Protocol]dialect.Outbound
	// InternalHosts are the hosts inside the own network that may be called; no other
	// is (Z1).
	InternalHosts network.Hosts
	// Resolver is nil for the system's.
	Resolver *net.Resolver
	// DialContext replaces the guarded dialer, in tests.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is nil for the system's roots.
	TLS *tls.Config
	// Now is the clock for dates in replies. Nil is time.Now.
	Now func() time.Time
}

// Client makes attempts. It is safe for concurrent use; its connections are shared.
type Client struct {
	outbound  map[catalog.Protocol]dialect.Outbound
	guard     *network.Guard
	transport *http.Transport
	now       func() time.Time
}

// New is a client with its own pool of connections.
func New(cfg Config) *Client {
	c := &Client{outbound: cfg.Outbound, now: cfg.Now}
	if c.now == nil {
		c.now = time.Now
	}
	c.guard = &network.Guard{
		Opened: cfg.InternalHosts,
		Dialer: net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second, Resolver: cfg.Resolver},
	}
	dial := cfg.DialContext
	if dial == nil {
		dial = c.guard.DialContext
	}
	// HTTP/2 would put many streams on one connection, where a lost packet or a full
	// window of one slow reader holds up all the others (S9).
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	// No proxy, and not the environment's either: traffic that goes elsewhere because of
	// a stray variable is a leak, and a proxy would resolve names beyond the guard.
	c.transport = &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        cfg.TLS,
		TLSHandshakeTimeout:    dialTimeout,
		Protocols:              protocols,
		DisableCompression:     true,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		WriteBufferSize:        writeBuffer,
		ReadBufferSize:         readBuffer,
	}
	return c
}

// Close ends the idle connections. Replies that are open stay open.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Refuses reports whether nothing would be sent to a base URL because it leads into
// the own network by what it says (Z1). A name that resolves there is found out when it
// is dialled: such an attempt fails as base_url_refused.
func (c *Client) Refuses(baseURL string) bool { return c.guard.Refuses(baseURL) }

// UnknownProtocolError is a provider whose protocol no dialect speaks: a fault of
// the configuration.
type UnknownProtocolError struct{ Protocol catalog.Protocol }

// Error names the protocol.
func (e *UnknownProtocolError) Error() string {
	return fmt.Sprintf("provider: no dialect for protocol %q", string(e.Protocol))
}

// Outbound is the dialect of a protocol, or an *UnknownProtocolError. A
// configuration is checked with it before it serves.
func (c *Client) Outbound(p catalog.Protocol) (dialect.Outbound, error) {
	if out, ok := c.outbound[p]; ok {
		return out, nil
	}
	return nil, &UnknownProtocolError{Protocol: p}
}

// Do makes one attempt. It returns when the provider has accepted the request and
// its reply can be read, or with the failure that ended the attempt. A Reply must
// be closed.
//
// ctx is the attempt's, reply included: ending it ends the upstream call at once
// (S7), and its cause says what that was. A cause of context.DeadlineExceeded is
// deadline_exceeded, a *failure.Failure is itself, any other is client_cancelled.
// To drain a reply after its client has left, give a context that outlives the
// client.
func (c *Client) Do(ctx context.Context, call Call) (*Reply, *failure.Failure) {
	out, err := c.Outbound(call.Protocol)
	if err != nil {
		return nil, &failure.Failure{Class: failure.DeploymentGone, Code: "unknown_protocol"}
	}
	up, err := out.Build(call.Request, dialect.Target{
		BaseURL: call.BaseURL, Region: call.Region, Secret: call.Secret, Access: call.Access, UpstreamModel: call.UpstreamModel,
		Stream: call.Stream, IdempotencyKey: call.IdempotencyKey, WithoutSeals: call.WithoutSeals,
		MaxOutputTokens: call.MaxOutputTokens,
		Now:             c.now(),
	})
	if err != nil {
		return nil, notBuilt(err)
	}
	a := newAttempt(ctx, call, c.now)
	return a.send(c.transport, out, up)
}

// notBuilt names a request that was not made. One that cannot be understood for this
// dialect is the caller's, and the caller is told which field it was; else the
// destination is configured in a way that nothing can be sent to.
func notBuilt(err error) *failure.Failure {
	if inv, ok := errors.AsType[*dialect.InvalidError](err); ok {
		return &failure.Failure{
			Class: failure.InvalidRequest, Code: "request_not_translatable",
			Relay: &failure.Relay{Status: http.StatusBadRequest, Message: inv.Message, Param: inv.Param},
		}
	}
	return &failure.Failure{Class: failure.DeploymentGone, Code: "request_not_buildable"}
}

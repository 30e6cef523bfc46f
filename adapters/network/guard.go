package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// Guard dials for a client that must not be led into the own network (Z1). It looks at
// the address that is about to be connected to, after the name was resolved and for
// each address that is tried: a name that resolves to another address the second time,
// and a redirect, meet it like any other. It looks once a connection, not once a
// request; a connection that is kept was looked at when it was made.
//
//	guard := &network.Guard{Opened: hosts, Dialer: net.Dialer{Timeout: 10 * time.Second}}
//	transport := &http.Transport{DialContext: guard.DialContext}
//
// Two things pass it by, and its user has to leave them out: an http.Transport's Proxy,
// which resolves the name itself, far from here; and DialTLSContext, which is another
// dialer. Redirects that are followed are guarded too, but a credential should not
// travel along with them.
//
// A Guard is safe for concurrent use. Its zero value opens nothing.
type Guard struct {
	// Opened are the hosts inside that may be reached.
	Opened Hosts
	// Dialer makes the connections; its Control and ControlContext are not used where
	// the guard's own takes their place.
	Dialer net.Dialer
}

// RefusedError is a connection that was not made because it leads into the own
// network. Nothing was sent, and where the name alone gave it away nothing was
// resolved.
type RefusedError struct {
	// Host is host:port as it was asked for.
	Host string
	// Addr is what it had resolved to; not valid when that was not looked at.
	Addr netip.Addr
}

// Error names the host and the way to open it.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("network: %s leads into the own network, and %s does not open it", e.Host, HostsEnv)
}

// Refuses reports whether a base URL leads inside by what it says and was not opened.
// DialContext would refuse it, too, and others besides: those that resolve to inside.
func (g *Guard) Refuses(baseURL string) bool { return Inside(baseURL, g.Opened) }

// Lookup resolves a base URL's host and reports an address that would be refused, if
// there is none that would not. It tells an operator beforehand what a dial would come
// to; what is dialled is looked at for itself. A host that does not resolve is not
// refused: that is another failure.
func (g *Guard) Lookup(ctx context.Context, baseURL string) (netip.Addr, bool) {
	host, port, err := net.SplitHostPort(HostOf(baseURL))
	if err != nil || g.Opened.opens(host, port) {
		return netip.Addr{}, false
	}
	resolver := g.Dialer.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	found, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(found) == 0 {
		return netip.Addr{}, false
	}
	for _, a := range found {
		if !insideAddr(a) || g.Opened.opensAddr(a, port) {
			return netip.Addr{}, false
		}
	}
	return found[0].Unmap(), true
}

// DialContext is net.Dialer's, for what is outside or opened. The error of what is not
// is, or wraps, a *RefusedError.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	written, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := g.Dialer // the guard's stays as it is
	if host := normal(written); !g.Opened.opens(host, port) {
		if insideHost(host) {
			return nil, &RefusedError{Host: address}
		}
		d.Control = nil
		d.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(resolved)
			if err == nil && (!insideAddr(at.Addr()) || g.Opened.opensAddr(at.Addr(), port)) {
				return nil
			}
			return &RefusedError{Host: address, Addr: at.Addr()}
		}
	}
	return d.DialContext(ctx, network, address)
}

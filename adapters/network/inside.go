// Package network tells addresses of the open internet from those that lead into the
// operator's own network, and dials only the former and what was opened (Z1).
package network

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Inside reports whether a URL leads into the own network by what it says: loopback,
// private, link-local and metadata addresses, however they are spelled, and names that
// only an own resolver knows. Names are not resolved: what one resolves to here is not
// what it resolves to for the one who fetches, and may be another a moment later; who
// fetches uses a Guard. A web address that cannot be read counts as inside, because a
// more lenient reader may find anything in it. Schemes that are no web address, such as
// gs, are the provider's business.
func Inside(address string, opened Hosts) bool {
	scheme, _, _ := strings.Cut(strings.TrimSpace(address), ":")
	switch strings.ToLower(scheme) {
	case "file":
		return true
	case "http", "https", "ftp":
	default:
		return false
	}
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" {
		return true
	}
	host := normal(u.Hostname())
	return !opened.opens(host, portOf(u)) && insideHost(host)
}

// ownZones are never delegated on the open internet.
var ownZones = []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"}

func insideHost(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return insideAddr(a)
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case last == host, numeric(last):
		// A name without a dot, or another spelling of an IPv4 address, such as 127.1
		// or 0x7f000001.
		return true
	}
	return slices.ContainsFunc(ownZones, func(zone string) bool { return strings.HasSuffix(host, zone) })
}

func numeric(label string) bool {
	return strings.HasPrefix(label, "0x") || strings.Trim(label, "0123456789") == ""
}

var (
	// special are the IPv4 ranges of no public host that netip has no word for: this
	// network, shared address space, protocol assignments, benchmarks, reserved; and
	// the one public address at which a cloud (Azure) talks to its own machines.
	special = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),
		netip.MustParsePrefix("100.64.0.0/10"),
		netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("168.63.129.16/32"),
	}
	// global is all of IPv6 that is given to public hosts. What lies outside of it is
	// loopback, local, or a spelling of IPv4 that nobody should need.
	global = netip.MustParsePrefix("2000::/3")
	// tunnels are in global and lead to an IPv4 address, or to no host.
	tunnels = []netip.Prefix{
		netip.MustParsePrefix("2001::/23"), // Teredo and protocol assignments
		netip.MustParsePrefix("2002::/16"), // 6to4
	}
	// nat64 is how a network without IPv4 reaches it: DNS64 answers with this prefix
	// for the providers of the open internet too, so what stands in it decides.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

// plain is the IPv4 address that an IPv6 address stands for, or the address itself.
func plain(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if nat64.Contains(a.WithZone("")) {
		wide := a.As16()
		return netip.AddrFrom4([4]byte(wide[12:]))
	}
	return a
}

func insideAddr(a netip.Addr) bool {
	a = plain(a).WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return true
	}
	holds := func(p netip.Prefix) bool { return p.Contains(a) }
	if a.Is4() {
		return slices.ContainsFunc(special, holds)
	}
	return !global.Contains(a) || slices.ContainsFunc(tunnels, holds)
}

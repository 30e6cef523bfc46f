// Package network tells addresses of the open internet from those that lead into the
// operator's own network (Z1).
package network

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

// HostsEnv lists the hosts inside the network that the operator opened, separated by
// commas: names or addresses, without a port.
const HostsEnv = "SLUICE_INTERNAL_HOSTS"

// Hosts are inside the network and opened all the same.
type Hosts []string

// HostsFrom reads the value of HostsEnv.
func HostsFrom(list string) Hosts {
	var hosts Hosts
	for host := range strings.SplitSeq(list, ",") {
		if host = normal(host); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// Inside reports whether a URL leads into the own network by what it says: loopback,
// private, link-local and metadata addresses, however they are spelled, and names that
// only an own resolver knows. Names are not resolved: what one resolves to here is not
// what it resolves to for the one who fetches. A web address that cannot be read counts
// as inside, because a more lenient reader may find anything in it. Schemes that are no
// web address, such as gs, are the provider's business.
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
	return !slices.Contains(opened, host) && insideHost(host)
}

// readable maps what a resolver would map, such as digits of full width. Unlike a
// registry it lets underscores pass.
var readable = idna.New(idna.MapForLookup(), idna.StrictDomainName(false))

func normal(host string) string {
	if mapped, err := readable.ToUnicode(host); err == nil {
		host = mapped
	}
	host = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(host), "."))
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
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

// special are the ranges of no public host that netip has no word for: this network,
// shared address space, protocol assignments, benchmarks, reserved; and the two ways to
// write an IPv4 address in IPv6 that Unmap does not undo.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("2002::/16"),
}

func insideAddr(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return !a.IsGlobalUnicast() || a.IsPrivate() ||
		slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

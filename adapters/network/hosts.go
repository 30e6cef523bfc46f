package network

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// HostsEnv lists the hosts inside the network that the operator opened, separated by
// commas: names or addresses, each with a port or for every port.
const HostsEnv = "SLUICE_INTERNAL_HOSTS"

// Host is one host of the list: a name or an address, never both.
type Host struct {
	Name string
	Addr netip.Addr
	// Port is empty for every port.
	Port string
}

// Hosts are inside the network and opened all the same. A name opens whatever it
// resolves to; an address opens itself, however it is spelled and whichever name led
// to it.
type Hosts []Host

// HostsFrom reads the value of HostsEnv. What it cannot read it refuses: a host that
// is passed over without a word is looked for in the wrong place.
func HostsFrom(list string) (Hosts, error) {
	var hosts Hosts
	for text := range strings.SplitSeq(list, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		h, err := parseHost(text)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// MustHosts is HostsFrom for a list that stands in code; it panics on a bad one.
func MustHosts(list string) Hosts {
	hosts, err := HostsFrom(list)
	if err != nil {
		panic(err)
	}
	return hosts
}

func parseHost(text string) (Host, error) {
	name, port := text, ""
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		name = strings.TrimSuffix(inner, "]")
	}
	if host, p, err := net.SplitHostPort(text); err == nil {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return Host{}, fmt.Errorf("%s: %q has no port between 1 and 65535 behind its colon", HostsEnv, text)
		}
		name, port = host, strings.TrimLeft(p, "0")
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return Host{Addr: plain(a), Port: port}, nil
	}
	if name = normal(name); name == "" || strings.ContainsAny(name, "/:*?#@[]% \t") {
		return Host{}, fmt.Errorf("%s: %q is not a host or host:port (a name or one address; no URL, range or pattern)", HostsEnv, text)
	}
	return Host{Name: name, Port: port}, nil
}

// opens reports whether a host as it was written is on the list. host is normal.
func (hs Hosts) opens(host, port string) bool {
	if len(hs) == 0 {
		return false
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return hs.opensAddr(a, port)
	}
	return slices.ContainsFunc(hs, func(h Host) bool { return h.Name == host && h.on(port) && h.Name != "" })
}

func (hs Hosts) opensAddr(a netip.Addr, port string) bool {
	a = plain(a)
	return slices.ContainsFunc(hs, func(h Host) bool {
		// An address without a zone stands for it in every zone.
		return (h.Addr == a || h.Addr == a.WithZone("")) && h.on(port)
	})
}

func (h Host) on(port string) bool { return h.Port == "" || h.Port == port }

// Opens reports whether the host of a URL, as it is written, is on the list.
func (hs Hosts) Opens(address string) bool {
	u, err := url.Parse(strings.TrimSpace(address))
	return err == nil && u.Hostname() != "" && hs.opens(normal(u.Hostname()), portOf(u))
}

// HostOf is the host of a URL in the form of HostsEnv, with its port; empty when the
// URL has none. It repeats nothing else of the URL.
func HostOf(address string) string {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Hostname() == "" {
		return ""
	}
	return net.JoinHostPort(normal(u.Hostname()), portOf(u))
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	switch strings.ToLower(u.Scheme) {
	case "http":
		return "80"
	case "ftp":
		return "21"
	}
	return "443"
}

// readable maps what a resolver would map, such as digits of full width. Unlike a
// registry it lets underscores pass.
var readable = idna.New(idna.MapForLookup(), idna.StrictDomainName(false))

// normal is the one spelling of a host that all others are compared in: without case,
// closing dots, brackets, or letters that stand for others.
func normal(host string) string {
	if strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) || strings.Contains(strings.ToLower(host), "xn--") {
		if mapped, err := readable.ToUnicode(host); err == nil {
			host = mapped
		}
	}
	host = strings.TrimRight(strings.ToLower(strings.TrimSpace(host)), ".")
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

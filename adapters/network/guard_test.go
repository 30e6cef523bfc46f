package network_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/adapters/network/networktest"
)

// listening is a listener that counts who came.
func listening(t *testing.T, address string) (port string, came *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	came = new(atomic.Int64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			came.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, came
}

func dial(t *testing.T, g *network.Guard, address string) error {
	t.Helper()
	conn, err := g.DialContext(t.Context(), "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// What a host's spelling gives away is refused before anybody is asked for it.
//
// Rules: Z1.
func TestAGuardRefusesWhatIsInside_Z1(t *testing.T) {
	port, came := listening(t, "127.0.0.1:0")
	g := &network.Guard{Dialer: net.Dialer{Resolver: networktest.Resolver(t, nil)}}
	for _, host := range []string{
		"127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F.0.0.1", "017700000001", "0177.0.0.1", "0", "",
		"localhost", "LOCALHOST.", "localhost..", "a.localhost", "metadata.google.internal", "llm", "llm.default.svc.cluster.local",
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[fe80::1%lo]", "[::1%lo]",
		"169.254.169.254", "[fd00:ec2::254]", "10.0.0.1", "１２７。0。0。１", "ｌocalhost", "127.0.0.1.",
	} {
		err := dial(t, g, host+":"+port)
		if refused, ok := errors.AsType[*network.RefusedError](err); !ok || refused.Host != host+":"+port || refused.Addr.IsValid() {
			t.Errorf("%q: %v", host, err)
		}
	}
	if came.Load() != 0 {
		t.Errorf("%d connections", came.Load())
	}
}

// A name that anybody may register and that leads inside.
//
// Rules: Z1.
func TestAGuardLooksAtWhatANameResolvesTo_Z1(t *testing.T) {
	port, came := listening(t, "127.0.0.1:0")
	for _, at := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fd00::1", "0.0.0.0"} {
		g := &network.Guard{Dialer: net.Dialer{Resolver: networktest.Resolver(t, map[string][]string{"provider.example": {at}})}}
		err := dial(t, g, "provider.example.:"+port)
		refused, ok := errors.AsType[*network.RefusedError](err)
		if !ok || !refused.Addr.IsValid() || !strings.Contains(refused.Error(), "provider.example.:"+port) {
			t.Errorf("%s: %v", at, err)
		}
	}
	if came.Load() != 0 {
		t.Errorf("%d connections", came.Load())
	}
}

// A name is opened wherever it leads; an address is opened whoever leads to it; a port
// where one was named.
//
// Rules: Z1.
func TestAGuardLetsThroughWhatWasOpened_Z1(t *testing.T) {
	port, _ := listening(t, "127.0.0.1:0")
	elsewhere, _ := listening(t, "127.0.0.1:0")
	for _, c := range []struct {
		opened, host, port string
		refused            bool
	}{
		{"provider.example", "provider.example.", port, false},
		{"Provider.Example.:" + port, "provider.example.", port, false},
		{"127.0.0.1", "provider.example.", port, false},
		{"127.0.0.1:" + port, "provider.example.", port, false},
		{"127.0.0.1:" + port, "127.0.0.1", port, false},
		{"127.0.0.1:" + port, "[::ffff:127.0.0.1]", port, false},
		{"127.0.0.1:" + port, "127.0.0.1", elsewhere, true},
		{"127.0.0.1:" + port, "provider.example.", elsewhere, true},
		{"provider.example:" + port, "provider.example.", elsewhere, true},
		{"provider.example:" + port, "127.0.0.1", port, true},
		{"127.0.0.2", "provider.example.", port, true},
		{"other.example", "provider.example.", port, true},
	} {
		g := &network.Guard{
			Opened: network.MustHosts(c.opened),
			Dialer: net.Dialer{Resolver: networktest.Resolver(t, map[string][]string{"provider.example": {"127.0.0.1"}})},
		}
		err := dial(t, g, c.host+":"+c.port)
		if _, refused := errors.AsType[*network.RefusedError](err); refused != c.refused || !refused && err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The answer that was looked at is the one that is connected to: there is no second
// question whose answer could be another.
//
// Rules: Z1.
func TestAGuardIsNotEvadedByRebinding_Z1(t *testing.T) {
	port, _ := listening(t, "127.0.0.1:0")
	other, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skip("this machine has one loopback address: ", err)
	}
	defer func() { _ = other.Close() }()
	// 127.0.0.1 stands for the open internet.
	g := &network.Guard{
		Opened: network.MustHosts("127.0.0.1"),
		Dialer: net.Dialer{Resolver: networktest.Resolver(t, map[string][]string{"provider.example": {"127.0.0.1", "127.0.0.2"}})},
	}
	if err := dial(t, g, "provider.example.:"+port); err != nil {
		t.Fatal(err)
	}
	err = dial(t, g, "provider.example.:"+port)
	if refused, ok := errors.AsType[*network.RefusedError](err); !ok || refused.Addr != netip.MustParseAddr("127.0.0.2") {
		t.Errorf("the second answer: %v", err)
	}
}

// Rules: Z1.
func TestLookupTellsWhatADialWouldComeTo_Z1(t *testing.T) {
	names := map[string][]string{"provider.example": {"10.1.2.3"}, "public.example": {"8.8.8.8"}}
	for _, c := range []struct {
		opened, baseURL, at string
	}{
		{"", "https://provider.example/v1", "10.1.2.3"},
		{"", "https://public.example/v1", ""},
		{"10.1.2.3:443", "https://provider.example/v1", ""},
		{"10.1.2.3:444", "https://provider.example/v1", "10.1.2.3"},
		{"provider.example", "https://provider.example/v1", ""},
		{"", "", ""},
	} {
		g := &network.Guard{Opened: network.MustHosts(c.opened), Dialer: net.Dialer{Resolver: networktest.Resolver(t, names)}}
		at, refused := g.Lookup(t.Context(), c.baseURL)
		if refused != (c.at != "") || refused && at.String() != c.at {
			t.Errorf("%+v: %s, %v", c, at, refused)
		}
	}
}

// A client that follows redirects, as one of webhooks might, is not led inside by one.
//
// Rules: Z1.
func TestAGuardHoldsOverRedirects_Z1(t *testing.T) {
	var asked atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inside.Close()
	outside := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect))
	defer outside.Close()
	g := &network.Guard{Opened: network.MustHosts(strings.TrimPrefix(outside.URL, "http://"))}
	transport := &http.Transport{DialContext: g.DialContext}
	defer transport.CloseIdleConnections()
	reply, err := (&http.Client{Transport: transport}).Get(outside.URL)
	if err == nil {
		_ = reply.Body.Close()
	}
	if _, ok := errors.AsType[*network.RefusedError](err); !ok || asked.Load() != 0 {
		t.Errorf("%v, %d requests inside", err, asked.Load())
	}
}

// What a base URL says by itself: looked at once a route of a request's plan.
func BenchmarkInside(b *testing.B) {
	hosts := network.MustHosts("llm.internal:8000,10.0.0.7,127.0.0.1:9000")
	for name, address := range map[string]string{
		"by name": "https://api.provider.example/v1", "opened": "http://10.0.0.7:8000/v1", "inside": "http://llm:8000/v1",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = network.Inside(address, hosts)
			}
		})
	}
}

// A name that is resolved and connected to, with the guard and without it.
func BenchmarkDial(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	dialer := net.Dialer{Resolver: networktest.Resolver(b, map[string][]string{"provider.example": {"127.0.0.1"}})}
	g := &network.Guard{Opened: network.MustHosts("127.0.0.1"), Dialer: dialer}
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"plain": dialer.DialContext, "guarded": g.DialContext,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				conn, err := dial(b.Context(), "tcp", "provider.example.:"+port)
				if err != nil {
					b.Fatal(err)
				}
				_ = conn.(*net.TCPConn).SetLinger(0)
				_ = conn.Close()
			}
		})
	}
}

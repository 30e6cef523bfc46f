// Package networktest resolves names as a test says, for tests of what dials.
package networktest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

type answers struct {
	mu    sync.Mutex // A and AAAA are asked for at once
	names map[string][]string
}

// Resolver is a resolver whose server says what the test says, without a socket. Each
// question for a name's address takes the next one of its list, and the last one stays;
// a name without a list fails the test. Names are asked for with a dot at their end, or
// the machine's own search list would be tried too.
func Resolver(t testing.TB, names map[string][]string) *net.Resolver {
	t.Helper()
	known := &answers{names: names}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go known.serve(t, server)
		return client, nil
	}}
}

// serve answers one connection's questions as DNS over TCP frames them.
func (a *answers) serve(t testing.TB, conn net.Conn) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		packed := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, packed); err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(packed); err != nil {
			t.Error(err)
			return
		}
		a.answer(t, &m)
		reply, err := m.Pack()
		if err != nil {
			t.Error(err)
			return
		}
		binary.BigEndian.PutUint16(size[:], uint16(len(reply)))
		if _, err := conn.Write(append(size[:], reply...)); err != nil {
			return
		}
	}
}

func (a *answers) answer(t testing.TB, m *dnsmessage.Message) {
	m.Response, m.RecursionAvailable = true, true
	m.Additionals = nil
	q := m.Questions[0]
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.names[name]
	if len(list) == 0 {
		t.Errorf("%s was asked for", q.Name)
		m.RCode = dnsmessage.RCodeNameError
		return
	}
	at := netip.MustParseAddr(list[0])
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}
	switch {
	case q.Type == dnsmessage.TypeA && at.Is4():
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: at.As4()}}}
	case q.Type == dnsmessage.TypeAAAA && at.Is6():
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: at.As16()}}}
	default:
		return
	}
	if len(list) > 1 {
		a.names[name] = list[1:]
	}
}

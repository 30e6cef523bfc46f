package provider

import (
	"context"
	"net"
	"strings"
	"testing"
)

// BenchmarkNext is one chunk through connection, framing, decoder and the limits of
// silence.
func BenchmarkNext(b *testing.B) {
	piece := []byte(strings.Repeat(hello, 64))
	c := New(Config{Outbound: outbound, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return &endless{piece: piece, head: streamHead}, nil
	}})
	defer c.Close()
	reply, f := c.Do(b.Context(), call(b))
	if f != nil {
		b.Fatal(f)
	}
	defer reply.Close()
	b.SetBytes(int64(len(hello)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reply.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

// endless is a connection whose other side answers at once and without end.
type endless struct {
	net.Conn
	head  string
	piece []byte
	rest  []byte
}

func (e *endless) Write(p []byte) (int, error) { return len(p), nil }
func (e *endless) Close() error                { return nil }

func (e *endless) Read(p []byte) (int, error) {
	if e.head != "" {
		n := copy(p, e.head)
		e.head = e.head[n:]
		return n, nil
	}
	if len(e.rest) == 0 {
		e.rest = e.piece
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

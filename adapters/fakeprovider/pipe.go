package fakeprovider

import (
	"context"
	"net"
	"sync"
)

// Pipe is a listener in memory. With it a provider runs inside a
// testing/synctest bubble, where time is virtual and a silence of ten minutes
// takes none. A reset looks like a close on it.
type Pipe struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipe makes a listener to Serve on and to dial with Dial.
func NewPipe() *Pipe {
	return &Pipe{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to the pipe's server; it fits http.Transport.DialContext.
func (p *Pipe) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *Pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "fakeprovider" }

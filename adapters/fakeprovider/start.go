package fakeprovider

import "net"

// TB is the part of testing.TB that Start needs; naming it here keeps package
// testing out of the binary.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Start runs a server on a free port of the loopback for as long as a test
// runs.
func Start(t TB, options Options) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("fakeprovider: %v", err)
	}
	return StartOn(t, listener, options)
}

// StartOn is Start on a listener of the test's own, a [Pipe] for instance.
func StartOn(t TB, listener net.Listener, options Options) *Server {
	t.Helper()
	s, err := New(options)
	if err != nil {
		t.Fatalf("%v", err)
	}
	address := listener.Addr().String()
	s.address.Store(&address)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatalf("fakeprovider: close: %v", err)
		}
		if err := <-served; err != nil {
			t.Fatalf("fakeprovider: serve: %v", err)
		}
	})
	return s
}

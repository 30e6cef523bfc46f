package edge

import "time"

// hangupInterval is how often running exchanges are asked for a hang-up. S7
// allows a second; a round costs one poll(2), 0.6 us, per running exchange.
const hangupInterval = 250 * time.Millisecond

// watchHangups ends the exchanges of clients that went away, until done closes.
// It is one goroutine for all connections.
//
// The descriptor is polled inside RawConn.Control, which holds a reference: it
// cannot be closed, let alone be given to another connection, in between. One
// poll over all descriptors would save system calls and lose that.
func (s *Server) watchHangups(done <-chan struct{}) {
	tick := time.NewTicker(hangupInterval)
	defer tick.Stop()
	var running []*conn
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		running = s.appendRunning(running[:0])
		for _, c := range running {
			if ex := c.current.Load(); ex != nil && hungUp(c) {
				ex.end(ErrClientGone)
				// Whatever is being written has no reader: unblock it. Should the
				// exchange have ended meanwhile and the next one begun, its client is
				// just as gone, and the next round tells it.
				c.kill()
			}
		}
		clear(running)
	}
}

// hungUp reports whether the peer closed or reset the connection, or we closed
// it. It reads nothing, and bytes that wait to be read are no hang-up.
func hungUp(c *conn) bool {
	if c.raw == nil {
		return false
	}
	var gone bool
	if err := c.raw.Control(func(fd uintptr) { gone = pollHangup(fd) }); err != nil {
		return true
	}
	return gone
}

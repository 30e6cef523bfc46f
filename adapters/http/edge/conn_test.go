package edge

import (
	"net"
	"testing"
	"time"
)

// written is a connection that remembers its writes.
type written struct {
	net.Conn
	all []string
}

func (w *written) Write(p []byte) (int, error) {
	if len(p) > 0 {
		w.all = append(w.all, string(p))
	}
	return len(p), nil
}
func (*written) SetWriteDeadline(time.Time) error { return nil }

// What is held is never lost and never overtaken: net.Buffers writes its parts one
// by one where the connection is no socket.
func TestHeldWriteGoesBeforeTheNext(t *testing.T) {
	next := map[string]func(*conn) error{
		"write":       func(c *conn) error { _, err := c.Write([]byte("event")); return err },
		"large write": func(c *conn) error { return c.writeBuffers(net.Buffers{[]byte("event")}) },
		"nothing":     func(c *conn) error { c.flush(); return nil },
	}
	for name, write := range next {
		under := &written{}
		c := &conn{Conn: under}
		c.joinNext()
		if n, err := c.Write([]byte("header")); n != len("header") || err != nil || len(under.all) > 0 {
			t.Fatalf("%s: the held write gave %d, %v and wrote %q", name, n, err, under.all)
		}
		if err := write(c); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("last")); err != nil {
			t.Fatal(err)
		}
		want := []string{"header", "event", "last"}
		if name == "nothing" {
			want = []string{"header", "last"}
		}
		if len(under.all) != len(want) {
			t.Fatalf("%s: wrote %q", name, under.all)
		}
		for i := range want {
			if under.all[i] != want[i] {
				t.Errorf("%s: wrote %q", name, under.all)
			}
		}
	}
}

// Flushing ends the holding also where nothing was held.
func TestFlushOfNothingEndsTheHold(t *testing.T) {
	under := &written{}
	c := &conn{Conn: under}
	c.joinNext()
	c.flush()
	if _, err := c.Write([]byte("x")); err != nil || len(under.all) != 1 {
		t.Errorf("nothing was held, and the next write gave %v, %q", err, under.all)
	}
}

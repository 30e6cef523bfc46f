package edge

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/gofiber/fiber/v2"
)

const benchHeader = "Authorization: Bearer sk-sluice-0123456789abcdef0123456789abcdef\r\nContent-Type: application/json\r\n" +
	"Accept: application/json\r\nUser-Agent: OpenAI/Python 1.99.0\r\nX-Stainless-Lang: python\r\n"

func benchRequest() []byte {
	return []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60\r\n" + benchHeader +
		"\r\n" + `{"model":"gpt-4.1","messages":[{"role":"user","content":""}]`)
}

// roundTrips sends the request over one connection and reads replies of the size
// of the first: a client that costs next to nothing.
func roundTrips(b *testing.B, addr net.Addr) {
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	request, reply := benchRequest(), make([]byte, 4096)
	size := len(reply)
	trip := func() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		n, err := io.ReadAtLeast(c, reply, min(size, 1))
		if err != nil {
			b.Fatal(err)
		}
		for n < size && size < len(reply) {
			m, err := c.Read(reply[n:])
			if err != nil {
				b.Fatal(err)
			}
			n += m
		}
		size = n
	}
	trip()
	b.ReportAllocs()
	for b.Loop() {
		trip()
	}
}

func BenchmarkEdge(b *testing.B) {
	s := serve(b, Config{}, func(s *Server) { s.Handle("POST", "/v1/chat/completions", ok) })
	roundTrips(b, s.Addr())
}

// BenchmarkBareFiber is what BenchmarkEdge is measured against.
func BenchmarkBareFiber(b *testing.B) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/v1/chat/completions", func(c *fiber.Ctx) error {
		c.Set("Content-Type", "application/json")
		return c.SendString(`{"ok":true}`)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Listener(ln) }()
	roundTrips(b, ln.Addr())
	if err := app.Shutdown(); err != nil {
		b.Fatal(err)
	}
	<-served
}

// BenchmarkEvent is one event of a stream, from Write to the client.
func BenchmarkEvent(b *testing.B) {
	event := []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n")
	s := serve(b, Config{}, func(s *Server) {
		s.Handle("POST", "/v1/chat/completions", func(context.Context, *Request) *Reply {
			return sse(func(ctx context.Context, w StreamWriter) error {
				for {
					if err := w.Write(event); err != nil {
						return err
					}
				}
			})
		})
	})
	c := dial(b, s)
	c.send(string(benchRequest()))
	body := c.response().Body
	buf := make([]byte, len(event))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := io.ReadFull(body, buf); err != nil {
			b.Fatal(err)
		}
	}
	_ = c.Close()
}

// BenchmarkHangupPoll is what watching one exchange costs every hangupInterval.
func BenchmarkHangupPoll(b *testing.B) {
	running := make(chan struct{})
	s := serve(b, Config{}, func(s *Server) {
		s.Handle("POST", "/v1/chat/completions", func(ctx context.Context, _ *Request) *Reply {
			close(running)
			<-ctx.Done()
			return nil
		})
	})
	c := dial(b, s)
	c.send(string(benchRequest()))
	<-running
	conns := s.appendRunning(nil)
	b.ReportAllocs()
	for b.Loop() {
		if hungUp(conns[0]) {
			b.Fatal("hung up")
		}
	}
}

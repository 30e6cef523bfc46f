package edge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// exchange is one request and its reply, from the complete body to the last byte
// that we write.
type exchange struct {
	conn *conn
	ctx  context.Context
	end  context.CancelCauseFunc
}

func (s *Server) begin(c *conn) *exchange {
	ex := &exchange{conn: c}
	ex.ctx, ex.end = context.WithCancelCause(s.base)
	c.current.Store(ex)
	return ex
}

// finish ends the exchange, once everything of it is written or given up.
func (ex *exchange) finish() {
	ex.conn.current.Store(nil)
	ex.end(nil)
}

// entry is called by fasthttp for every parsed header. Nothing above it recovers,
// so it does, for faults of our own and of fiber's router.
func (s *Server) entry(fctx *fasthttp.RequestCtx) {
	c := fctx.Conn().(*conn)
	c.busy.Store(true) // a pipelined request was read with the one before it
	defer func() {
		if v := recover(); v != nil {
			s.logPanic("request", v)
			c.kill()
		}
	}()
	if knownMethod(fctx.Method()) == "" {
		s.refuseRequest(fctx, MethodNotAllowed)
		return
	}
	s.route(fctx)
}

// exchange is the end of a route.
func (s *Server) exchange(fc *fiber.Ctx, names []string, h Handler) {
	fctx := fc.Context()
	c := fctx.Conn().(*conn)
	r, ok := copyHead(fctx)
	if !ok {
		s.closeUnread(fctx)
		s.send(fctx, s.render(r, Malformed))
		return
	}
	r.Params = copyParams(fc, names)

	if err := s.readBody(fctx, r); err != nil {
		s.closeUnread(fctx)
		var bad bodyError
		if !errors.As(err, &bad) {
			c.kill() // the client broke off: nobody to answer
			return
		}
		s.send(fctx, s.render(r, ErrorKind(bad)))
		return
	}

	ex := s.begin(c)
	reply := s.call(ex.ctx, r, h)
	if reply == nil {
		ex.finish()
		c.kill()
		return
	}
	if reply.Stream == nil {
		ex.finish()
		s.send(fctx, reply)
		return
	}
	s.sendStream(fctx, ex, reply)
}

// call runs the handler; its panic becomes a reply.
func (s *Server) call(ctx context.Context, r *Request, h Handler) (reply *Reply) {
	defer func() {
		if v := recover(); v != nil {
			s.logPanic("handler", v)
			reply = s.render(r, Panic)
		}
	}()
	reply = h(ctx, r)
	if reply == nil && ctx.Err() == nil {
		s.log.Error("handler returned no reply")
		return s.render(r, Panic)
	}
	return reply
}

// render asks the caller for an error's reply, and falls back to the bare status.
func (s *Server) render(r *Request, kind ErrorKind) (reply *Reply) {
	plain := &Reply{
		Status: kind.Status(),
		Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
		Body:   []byte(http.StatusText(kind.Status()) + "\n"),
	}
	if s.onError == nil {
		return plain
	}
	defer func() {
		if v := recover(); v != nil {
			s.logPanic("error renderer", v)
			reply = plain
		}
	}()
	if reply = s.onError(r, kind); reply == nil || reply.Stream != nil {
		return plain
	}
	return reply
}

// send leaves the reply with fasthttp, which writes it after the handler.
func (s *Server) send(fctx *fasthttp.RequestCtx, reply *Reply) {
	s.setHead(fctx, reply)
	fctx.Response.SetBodyRaw(reply.Body)
}

func (s *Server) setHead(fctx *fasthttp.RequestCtx, reply *Reply) {
	fctx.SetStatusCode(reply.Status)
	h := &fctx.Response.Header
	for k, vs := range reply.Header {
		if k == "Content-Length" || k == "Transfer-Encoding" {
			continue
		}
		for _, v := range vs {
			h.Add(k, v)
		}
	}
	select {
	case <-s.draining:
		fctx.SetConnectionClose()
	default:
	}
}

// closeUnread is for a request that was not read to its end: what is left of it
// would be taken for the next one.
func (s *Server) closeUnread(fctx *fasthttp.RequestCtx) {
	fctx.SetConnectionClose()
	fctx.Conn().(*conn).linger.Store(true)
}

// onRouteError is fiber's: no route, or not for this method.
func (s *Server) onRouteError(fc *fiber.Ctx, err error) error {
	fctx := fc.Context()
	var fe *fiber.Error
	if !errors.As(err, &fe) || fe.Code != fiber.StatusMethodNotAllowed {
		s.refuseRequest(fctx, NotFound)
		return nil
	}
	if fc.Method() == fiber.MethodOptions { // fiber has set Allow
		if r, ok := copyHead(fctx); !ok || declaredLength(r.Header) != 0 {
			s.closeUnread(fctx)
		}
		s.send(fctx, &Reply{Status: http.StatusNoContent})
		return nil
	}
	s.refuseRequest(fctx, MethodNotAllowed)
	return nil
}

func (s *Server) refuseRequest(fctx *fasthttp.RequestCtx, kind ErrorKind) {
	r, ok := copyHead(fctx)
	if !ok {
		kind = Malformed
	}
	if !ok || declaredLength(r.Header) != 0 {
		s.closeUnread(fctx)
	}
	s.send(fctx, s.render(r, kind))
}

// onParseError is fasthttp's: the request could not be read. The connection is
// closed behind the reply.
func (s *Server) onParseError(fctx *fasthttp.RequestCtx, err error) {
	c := fctx.Conn().(*conn)
	if !c.busy.Load() || c.eof.Load() {
		c.kill() // not a byte arrived in time, or the client broke off
		return
	}
	c.linger.Store(true)
	kind := Malformed
	var small *fasthttp.ErrSmallBuffer
	var ne net.Error
	switch {
	case errors.As(err, &small):
		kind = HeaderTooLarge
	case errors.As(err, &ne) && ne.Timeout(), errors.Is(err, fasthttp.ErrTimeout):
		kind = Timeout
	}
	s.send(fctx, s.render(&Request{RemoteAddr: c.remote, At: time.Now()}, kind))
}

// logPanic logs what went wrong without the panic's message, which may quote a
// prompt; the runtime's own messages never do.
func (s *Server) logPanic(where string, v any) {
	what := fmt.Sprintf("%T", v)
	if re, ok := v.(runtime.Error); ok {
		what = re.Error()
	}
	s.log.Error("panic", "in", where, "panic", what, "stack", string(debug.Stack()))
}

func bodyOf(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }

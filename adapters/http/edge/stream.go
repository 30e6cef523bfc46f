package edge

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"
)

// chunkBytes bounds one HTTP chunk of a large event: as conn.Write's pieces, it
// is what the client must take within Limits.WriteStall.
const chunkBytes = writePieceBytes

// sendStream makes the stream the reply's body.
//
// There were four ways. SetBodyStreamWriter is a second goroutine, a second
// buffer and a pipe between them: panics kill, errors come late. Hijacking costs
// the keep-alive connection and keeps fasthttp's buffers all the same. A reader
// that is fed by the handler needs the pipe again. What is left is to let
// fasthttp ask for the first bytes of the body, which it does on the connection's
// own goroutine right after it sent the header, and to run the whole stream
// inside that one Read, writing chunks to the socket: no goroutine, no pipe, no
// copy, and the real error of each write.
func (s *Server) sendStream(fctx *fasthttp.RequestCtx, ex *exchange, reply *Reply) {
	s.setHead(fctx, reply)
	h := &fctx.Response.Header
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	body := &streamBody{s: s, ex: ex, run: reply.Stream}
	if fctx.IsHead() || reply.Status == http.StatusNoContent || reply.Status == http.StatusNotModified {
		// fasthttp would send the line end of an empty trailer, which the client
		// reads as the next response.
		_ = body.Close()
		return
	}
	fctx.Response.ImmediateHeaderFlush = true
	ex.conn.joinNext() // the header, with the first event
	fctx.Response.SetBodyStream(body, -1)
}

// streamBody is the io.ReadCloser that fasthttp reads the body from.
type streamBody struct {
	s   *Server
	ex  *exchange
	run func(context.Context, StreamWriter) error // nil once called
}

// Read runs the stream and then reports the end, after which fasthttp sends the
// last chunk. p serves as the buffer for small events.
func (b *streamBody) Read(p []byte) (int, error) {
	if b.run == nil {
		return 0, io.EOF
	}
	w := &streamWriter{ex: b.ex, scratch: p}
	if err := b.call(w); err != nil {
		b.ex.conn.flush()
		return 0, err
	}
	b.ex.conn.joinNext() // the last chunk, with the empty trailer
	return 0, io.EOF
}

// Close is called in any case; without a Read before when the header could not
// be sent or there is no body to send.
func (b *streamBody) Close() error {
	if b.run != nil {
		b.ex.end(nil)
		_ = b.call(&streamWriter{ex: b.ex, over: true})
	}
	return nil
}

func (b *streamBody) call(w *streamWriter) (err error) {
	run := b.run
	b.run = nil
	defer b.ex.finish()
	defer w.finish()
	defer func() {
		if v := recover(); v != nil {
			b.s.logPanic("stream", v)
			err = errStreamPanic
		}
	}()
	return run(b.ex.ctx, w)
}

var errStreamPanic = errors.New("edge: stream panicked")

type streamWriter struct {
	ex *exchange

	mu      sync.Mutex
	scratch []byte // fasthttp's, only until the stream is over
	over    bool
	err     error
}

// Write implements StreamWriter.
func (w *streamWriter) Write(p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
		return ErrStreamOver
	case w.err != nil:
		return w.err
	}
	for part := range slices.Chunk(p, chunkBytes) {
		if err := w.writeChunk(part); err != nil {
			w.err = ErrClientGone
			if errors.Is(err, os.ErrDeadlineExceeded) {
				w.err = ErrClientStalled
			}
			w.ex.end(w.err)
			return w.err
		}
	}
	return nil
}

// writeChunk frames p as one chunk of the chunked coding, with one system call.
func (w *streamWriter) writeChunk(p []byte) error {
	const framing = 16 + 2*len("\r\n") // hex digits and line ends
	head := strconv.AppendUint(w.scratch[:0], uint64(len(p)), 16)
	head = append(head, '\r', '\n')
	if len(p)+framing > len(w.scratch) {
		return w.ex.conn.writeBuffers(net.Buffers{head, p, []byte("\r\n")})
	}
	whole := append(head, p...)
	_, err := w.ex.conn.Write(append(whole, '\r', '\n'))
	return err
}

func (w *streamWriter) finish() {
	w.mu.Lock()
	w.over, w.scratch = true, nil
	w.mu.Unlock()
}

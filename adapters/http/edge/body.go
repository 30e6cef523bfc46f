package edge

import (
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"
)

const (
	// firstBodyBytes is allocated on the word of a Content-Length; what is beyond
	// it only as the bytes arrive.
	firstBodyBytes = 64 << 10

	// zstdWindowBytes is what RFC 9659 lets a zstd body ask for.
	zstdWindowBytes = 8 << 20
)

// bodyError is a body that the client can be told about; any other error is a
// client that broke off.
type bodyError ErrorKind

func (e bodyError) Error() string { return "edge: body: " + ErrorKind(e).String() }

// errTruncated is a body that ended before its end.
var errTruncated = errors.New("edge: body truncated")

// doNotRead keeps fasthttp from waiting for the first bytes of a body that is too long
// by its own word: it would read up to 8 KiB before anybody is asked, so a client that
// waits for the refusal before it sends would wait for nothing. What the header said
// stays in its raw lines, where declaredLength finds it.
func (s *Server) doNotRead(h *fasthttp.RequestHeader) {
	if h.ContentLength() > s.limits.BodyBytes {
		h.Del("Expect") // no 100 for what is refused
		h.SetContentLength(0)
	}
}

// declaredLength is the length that the request's own header gives its body: -1 when it
// is chunked, 0 when there is none.
func declaredLength(header http.Header) int {
	switch length := header["Content-Length"]; {
	case len(header["Transfer-Encoding"]) > 0:
		return -1
	case len(length) == 1:
		n, err := strconv.Atoi(length[0])
		if err != nil || n < 0 {
			return math.MaxInt // more than can be counted is more than is read
		}
		return n
	}
	return 0
}

// readBody reads the body into r, unpacked and bounded both ways, or leaves the
// connection to be closed.
func (s *Server) readBody(fctx *fasthttp.RequestCtx, r *Request) error {
	length := declaredLength(r.Header)
	if length == 0 {
		return nil
	}
	if r.Method == "GET" || r.Method == "HEAD" {
		// fasthttp does not read these to their end; nor do we.
		s.closeUnread(fctx)
		return nil
	}
	if length > s.limits.BodyBytes {
		return bodyError(BodyTooLarge)
	}
	wire := &wireReader{src: fctx.RequestBodyStream(), conn: fctx.Conn().(*conn), length: length, left: s.limits.BodyBytes}
	defer func() {
		_ = fctx.Request.CloseBodyStream()
		fctx.Request.SwapBody(nil) // fasthttp's first 8 KiB, ours to drop
	}()

	body, err := s.unpack(wire, r, length)
	if err == nil {
		// The end of the compressed stream is not the end of the body.
		_, err = io.Copy(io.Discard, wire)
	}
	if err != nil {
		return err
	}
	r.Body = body
	return nil
}

func (s *Server) unpack(wire *wireReader, r *Request, length int) ([]byte, error) {
	coding := strings.ToLower(strings.Join(r.Header["Content-Encoding"], ","))
	if coding == "" || coding == "identity" {
		return readBounded(wire, length, s.limits.BodyBytes)
	}
	pool := decoders[coding]
	if pool == nil {
		return nil, bodyError(UnsupportedEncoding)
	}
	d := pool.Get().(decoder)
	defer func() {
		_ = d.Reset(nothing{})
		pool.Put(d)
	}()
	err := d.Reset(wire)
	var body []byte
	if err == nil {
		body, err = readBounded(d, -1, s.limits.BodyBytes)
	}
	switch {
	case err == nil:
		delete(r.Header, "Content-Encoding")
		delete(r.Header, "Content-Length")
		return body, nil
	case wire.err != nil && wire.err != io.EOF:
		return nil, wire.err // not the decoder's name for it
	case errors.Is(err, bodyError(BodyTooLarge)), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return nil, bodyError(BodyTooLarge)
	}
	return nil, bodyError(Malformed)
}

// readBounded reads to the end, in memory that grows with what arrives and never
// past the limit. length is -1 when not known.
func readBounded(src io.Reader, length, limit int) ([]byte, error) {
	first := min(firstBodyBytes, limit+1)
	if length >= 0 {
		first = min(first, length)
	}
	buf := make([]byte, 0, first)
	for {
		if len(buf) == length {
			return buf, nil
		}
		if len(buf) == cap(buf) {
			grown := min(max(2*cap(buf), 512), limit+1)
			if length > 0 {
				grown = min(grown, length)
			}
			buf = slices.Grow(buf, grown-len(buf))
		}
		n, err := src.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if len(buf) > limit {
			return nil, bodyError(BodyTooLarge)
		}
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// wireReader counts the body as sent and knows where it really ends.
type wireReader struct {
	src    io.Reader
	conn   *conn
	length int // -1 when chunked
	left   int // bytes still allowed
	read   int
	err    error // first error, io.EOF at the proper end
}

func (w *wireReader) Read(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.src.Read(p)
	w.read += n
	w.left -= n
	switch {
	case w.left < 0:
		err = bodyError(BodyTooLarge)
	case err == io.EOF:
		err = w.checkEnd()
	case err != nil:
		err = readError(err, w.conn)
	}
	w.err = err
	return n, err
}

// checkEnd tells the end of the body from the end of the connection: fasthttp
// says io.EOF for both.
func (w *wireReader) checkEnd() error {
	if w.length >= 0 && w.read != w.length || w.length < 0 && w.conn.eof.Load() {
		return errTruncated
	}
	return io.EOF
}

func readError(err error, c *conn) error {
	var ne net.Error
	switch {
	case errors.As(err, &ne) && ne.Timeout(), errors.Is(err, fasthttp.ErrTimeout):
		return bodyError(Timeout)
	case errors.As(err, &ne), errors.Is(err, io.ErrUnexpectedEOF), c.eof.Load():
		return errTruncated
	}
	return bodyError(Malformed) // broken chunks
}

// decoder is what the three have in common.
type decoder interface {
	io.Reader
	Reset(io.Reader) error
}

// decoders are pooled: each holds tens of KiB that are worth keeping.
var decoders = map[string]*sync.Pool{
	"gzip":   {New: func() any { return new(gzip.Reader) }},
	"x-gzip": {New: func() any { return new(gzip.Reader) }},
	"br":     {New: func() any { return brotli.NewReader(nothing{}) }},
	"zstd": {New: func() any {
		// One thread: it then decodes on the caller's goroutine and starts none.
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdWindowBytes))
		if err != nil {
			panic(err) // only for contradictory options
		}
		return d
	}},
}

// nothing is what a pooled decoder reads from, so that it holds no connection.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, io.EOF }

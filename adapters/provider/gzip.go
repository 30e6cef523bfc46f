package provider

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// errEncoding is a body in an encoding that was not asked for and is not known.
var errEncoding = errors.New("provider: unknown content encoding")

// decoded is a reply's body without its content encoding. Identity is what is
// asked for, and some answer in gzip nevertheless. How much may come out is bounded
// where it is read.
func decoded(resp *http.Response) io.ReadCloser {
	switch strings.ToLower(resp.Header.Get("Content-Encoding")) {
	case "", "identity":
		return resp.Body
	case "gzip", "x-gzip":
		return &gunzip{body: resp.Body}
	default:
		return &unreadable{resp.Body}
	}
}

// gunzip starts with the first read and not before: the header of the gzip stream
// is part of the body, which may be long in coming.
type gunzip struct {
	body io.ReadCloser
	zr   *gzip.Reader
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.zr == nil {
		zr, err := gzip.NewReader(g.body)
		if err != nil {
			return 0, err
		}
		g.zr = zr
	}
	return g.zr.Read(p)
}

func (g *gunzip) Close() error { return g.body.Close() }

type unreadable struct{ io.ReadCloser }

func (*unreadable) Read([]byte) (int, error) { return 0, errEncoding }

package chat

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/adapters/sse"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// errNotChat is a chunk or an answer whose bytes are no JSON object. A decoder lets
// none pass.
var errNotChat = errors.New("chat: not a JSON object")

// foreignError is a request of another dialect that cannot be decoded.
type foreignError struct{ from neutral.Dialect }

func (e *foreignError) Error() string {
	return fmt.Sprintf("chat: no way to read a request in dialect %q", string(e.from))
}

// NewStream begins a streaming reply.
func (Inbound) NewStream(req *dialect.Request, meta dialect.Meta) dialect.StreamEncoder {
	return &streamEncoder{
		rewriter: rewriter{model: rawjson.Quote(meta.Model), keepUsage: req.IncludeUsage, member: "delta"},
		meta:     meta,
	}
}

type streamEncoder struct {
	rewriter
	meta    dialect.Meta
	scratch []byte
	// chunks is set once the answer turns out to come in another dialect.
	chunks *chunkWriter
}

// Encode writes a chunk's own bytes with its edits cut in, or says its events where
// it is of another dialect.
func (e *streamEncoder) Encode(dst []byte, c *neutral.Chunk) ([]byte, error) {
	if c.Dialect != neutral.Chat {
		if e.chunks == nil {
			e.chunks = newChunkWriter(e.meta)
		}
		return e.chunks.encode(dst, c.Events)
	}
	// The decoder has found it valid.
	doc := rawjson.View(c.Raw)
	if !doc.IsObject() {
		return dst, errNotChat
	}
	e.begin(c.Raw)
	e.object(doc)
	if e.usageOnly && !e.keepUsage {
		return dst, nil
	}
	if bytes.IndexByte(c.Raw, '\n') < 0 && bytes.IndexByte(c.Raw, '\r') < 0 {
		dst = append(dst, "data: "...)
		dst = rawjson.Splice(dst, c.Raw, e.edits)
		return append(dst, '\n', '\n'), nil
	}
	e.scratch = rawjson.Splice(e.scratch[:0], c.Raw, e.edits)
	return sse.Append(dst, "", e.scratch), nil
}

// End writes the sentinel. It stands for success and is written after nothing else.
func (e *streamEncoder) End(dst []byte) []byte {
	if e.chunks != nil && e.keepUsage {
		dst = e.chunks.usage(dst)
	}
	return append(dst, "data: [DONE]\n\n"...)
}

// Fail writes an error, after which official clients raise, and no sentinel (S3).
func (e *streamEncoder) Fail(dst []byte, err *apierror.Error) []byte {
	return sse.Append(dst, "", errorBody(err))
}

// KeepAlive writes a comment.
func (e *streamEncoder) KeepAlive(dst []byte) []byte { return append(dst, sse.Comment...) }

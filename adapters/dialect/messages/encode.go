package messages

import (
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/adapters/sse"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// NewStream begins a streaming reply.
func (Inbound) NewStream(_ *dialect.Request, meta dialect.Meta) dialect.StreamEncoder {
	return &streamEncoder{meta: meta, blocks: blockWriter{meta: meta}}
}

// streamEncoder passes a provider's own events on, or writes those of another
// dialect as blocks. One answer comes from one provider, so a stream is one or the
// other.
type streamEncoder struct {
	meta   dialect.Meta
	blocks blockWriter
	own    bool
	// ended says that the provider's message_stop has been passed on.
	ended   bool
	scratch []byte
}

// Encode writes a chunk.
func (e *streamEncoder) Encode(dst []byte, c *neutral.Chunk) ([]byte, error) {
	if c.Dialect != neutral.Messages {
		return e.blocks.encode(dst, c)
	}
	e.own = true
	e.ended = e.ended || c.Name == "message_stop"
	if c.Name != "message_start" {
		return sse.Append(dst, c.Name, c.Raw), nil
	}
	doc, ok := rawjson.Parse(c.Raw)
	if !ok {
		return dst, errNotMessages
	}
	edits := renameModel(nil, rawjson.Member(doc, "message"), e.meta.Model)
	e.scratch = rawjson.Splice(e.scratch[:0], c.Raw, edits)
	return sse.Append(dst, c.Name, e.scratch), nil
}

// renameModel puts the model's name into a message (N23).
func renameModel(edits []rawjson.Edit, message gjson.Result, model string) []rawjson.Edit {
	message.ForEach(func(key, v gjson.Result) bool {
		if key.Str == "model" {
			edits = append(edits, rawjson.Replace(v, rawjson.Quote(model)))
		}
		return true
	})
	return edits
}

// End writes what is missing of the success terminator, and never another dialect's.
func (e *streamEncoder) End(dst []byte) []byte {
	switch {
	case e.ended:
		return dst
	case e.own:
		return append(dst, messageStop...)
	default:
		return e.blocks.end(dst)
	}
}

const (
	messageStop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	ping        = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
)

// Fail writes an error, after which official clients raise, and no message_stop (S3).
func (e *streamEncoder) Fail(dst []byte, err *apierror.Error) []byte {
	return sse.Append(dst, "error", errorBody(err))
}

// KeepAlive writes a ping, which clients take anywhere.
func (e *streamEncoder) KeepAlive(dst []byte) []byte { return append(dst, ping...) }

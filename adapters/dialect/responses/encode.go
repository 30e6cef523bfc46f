package responses

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/adapters/sse"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// NewStream begins a streaming reply.
func (in Inbound) NewStream(req *dialect.Request, meta dialect.Meta) dialect.StreamEncoder {
	return &streamEncoder{in: in, reply: newReply(req, meta), writer: writer{open: -1}}
}

// streamEncoder passes a Responses provider's events on, or writes events of its own
// for an answer in another dialect. A stream is one or the other from its first chunk.
type streamEncoder struct {
	in    Inbound
	reply reply
	// sequence is the number of the next event.
	sequence int64
	// created is set once the caller knows of the response, passing once the events
	// are a provider's own.
	created, passing bool
	// whole is the response of the terminal event, to be stored.
	whole  []byte
	edits  []rawjson.Edit
	writer writer
	// scratch is memory that is used again for each event.
	scratch []byte
}

// Encode writes a chunk.
func (e *streamEncoder) Encode(dst []byte, c *neutral.Chunk) ([]byte, error) {
	if c.Dialect == neutral.Responses {
		return e.pass(dst, c)
	}
	return e.events(dst, c)
}

// pass writes an event as it came. Only those that carry the response as a whole have
// something to be put right in them.
func (e *streamEncoder) pass(dst []byte, c *neutral.Chunk) ([]byte, error) {
	e.passing = true
	if !hasResponse(c) {
		e.sequence++
		return appendEvent(dst, c.Name, c.Raw), nil
	}
	doc, ok := rawjson.Parse(c.Raw)
	if !ok {
		return dst, errNotResponses
	}
	response := doc.Get("response")
	if n, ok := rawjson.Integer(doc.Get("sequence_number")); ok {
		e.sequence = n
	}
	e.sequence++
	if !e.created {
		e.created = true
		e.reply.id = string([]byte(response.Get("id").Str))
	}
	e.edits = e.reply.edits(e.edits[:0], response)
	if len(e.edits) == 0 {
		e.keep(c, c.Raw)
		return appendEvent(dst, c.Name, c.Raw), nil
	}
	out := rawjson.Splice(e.scratch[:0], c.Raw, e.edits)
	e.keep(c, out)
	e.scratch = out
	return appendEvent(dst, c.Name, out), nil
}

// keep holds on to a response that has ended, where it may be stored.
func (e *streamEncoder) keep(c *neutral.Chunk, event []byte) {
	if e.in.Store != nil && c.Events[len(c.Events)-1].Kind == neutral.Stop {
		e.whole = []byte(gjson.GetBytes(event, "response").Raw)
	}
}

// hasResponse reports whether an event carries the whole response: those that begin
// it and those that end it.
func hasResponse(c *neutral.Chunk) bool {
	for i := range c.Events {
		if k := c.Events[i].Kind; k == neutral.Start || k == neutral.Stop {
			return true
		}
	}
	return false
}

// appendEvent writes an event with its name: clients of this dialect may dispatch on
// either.
func appendEvent(dst []byte, name string, data []byte) []byte {
	if bytes.IndexByte(data, '\n') >= 0 || bytes.IndexByte(data, '\r') >= 0 {
		return sse.Append(dst, name, data)
	}
	dst = append(dst, "event: "...)
	dst = append(dst, name...)
	dst = append(dst, "\ndata: "...)
	dst = append(dst, data...)
	return append(dst, '\n', '\n')
}

// End writes the terminal event of an answer in another dialect; a provider's own has
// been passed on. Then the response is stored, if the caller may continue it.
func (e *streamEncoder) End(dst []byte) []byte {
	if !e.passing {
		dst = e.terminal(dst)
	}
	if e.whole != nil {
		e.in.save(e.reply.req, e.whole)
	}
	return dst
}

// Fail writes response.failed, the one way in which a stream that is given up may end
// (P11): with the response's id if the caller knows it, else after a response.created
// of its own.
func (e *streamEncoder) Fail(dst []byte, err *apierror.Error) []byte {
	dst = e.begin(dst)
	return e.lifecycle(dst, "response.failed", func(o *object) {
		e.reply.write(o, response{status: "failed", err: err})
	})
}

// KeepAlive writes a comment.
func (e *streamEncoder) KeepAlive(dst []byte) []byte { return append(dst, sse.Comment...) }

// begin writes response.created and response.in_progress, once.
func (e *streamEncoder) begin(dst []byte) []byte {
	if e.created {
		return dst
	}
	e.created = true
	for _, name := range []string{"response.created", "response.in_progress"} {
		dst = e.lifecycle(dst, name, func(o *object) { e.reply.write(o, response{status: "in_progress"}) })
	}
	return dst
}

// lifecycle writes an event that carries the whole response.
func (e *streamEncoder) lifecycle(dst []byte, name string, write func(*object)) []byte {
	return e.event(dst, name, func(o *object) {
		o.key("response")
		write(o)
	})
}

// event writes one event of our own under the next number.
func (e *streamEncoder) event(dst []byte, name string, members func(*object)) []byte {
	dst = append(dst, "event: "...)
	dst = append(dst, name...)
	dst = append(dst, "\ndata: "...)
	o := object{b: append(dst, '{')}
	o.text("type", name)
	o.number("sequence_number", e.sequence)
	e.sequence++
	members(&o)
	return append(o.b, "}\n\n"...)
}

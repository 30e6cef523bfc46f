package responses

import (
	"bytes"
	"errors"
	"io"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/adapters/sse"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// NewStream reads a provider's stream.
func (Outbound) NewStream(req *dialect.Request, body io.Reader) dialect.StreamDecoder {
	d := &streamDecoder{frames: sse.NewReader(body, 0)}
	d.facts.paragraphs = foreign(req)
	return d
}

// foreign reports whether an answer goes to a caller of another dialect.
func foreign(req *dialect.Request) bool { return req != nil && req.Dialect != neutral.Responses }

// streamDecoder reads events and notices when an answer is not one (S4).
type streamDecoder struct {
	frames *sse.Reader
	tally  neutral.Tally
	facts  facts
	// event is the one that is being read: the table of readers would have each event
	// on the heap.
	event frame
	// finished is set by the terminal event, which is the last one.
	finished bool
}

// Finished reports whether the terminal event has come.
func (d *streamDecoder) Finished() bool { return d.finished }

// Tally is what was read so far.
func (d *streamDecoder) Tally() *neutral.Tally { return &d.tally }

// Ready reports whether Next has an answer without waiting.
func (d *streamDecoder) Ready() bool { return d.finished || d.frames.Ready() }

// Next reads the next event. Nothing follows the terminal one: a stream that has had
// it ends at once, whatever becomes of its connection (S14).
func (d *streamDecoder) Next(c *neutral.Chunk) error {
	if d.finished {
		return d.done()
	}
	frame, err := d.frames.Next()
	if err != nil {
		return d.end(err)
	}
	if bytes.HasPrefix(frame.Data, []byte("[DONE]")) {
		// Chat's sentinel, which some compatible servers send here too. It is no
		// terminal event.
		return truncated()
	}
	f := &d.facts
	f.doc, f.events, f.arena = frame.Data, f.events[:0], f.arena[:0]
	if cap(f.arena) > maxArena {
		f.arena = nil
	}
	name, failed := d.decode(frame)
	if failed != nil {
		return failed
	}
	*c = neutral.Chunk{Dialect: neutral.Responses, Name: name, Raw: frame.Data, Events: f.events}
	d.tally.Add(c)
	return nil
}

func truncated() *failure.Failure {
	return &failure.Failure{Class: failure.StreamTruncated, Code: "no_terminator", PossiblyBilled: true}
}

// end names the end of the body before a terminal event.
func (d *streamDecoder) end(err error) error {
	if _, ok := errors.AsType[*sse.FrameTooLargeError](err); ok {
		return payload("frame_too_large")
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if stats := d.frames.Stats(); stats.Events == 0 && stats.Stray > 0 {
		return payload("not_a_stream")
	}
	return truncated()
}

func (d *streamDecoder) done() error {
	if empty(&d.tally) {
		return &failure.Failure{Class: failure.EmptyCompletion, Code: "no_output"}
	}
	return io.EOF
}

// empty reports whether an answer that has ended has nothing in it (W8). One that
// ended for its length or for a filter says why it is empty: that is its answer.
func empty(t *neutral.Tally) bool {
	return !t.Committed() && t.Stop != neutral.StopLength && t.Stop != neutral.StopContentFilter
}

// frame is the members of an event that are read.
type frame struct {
	kind                                  string
	output, content, summary              int64
	delta, text, refusal, arguments, args gjson.Result
	item, part, response, err             gjson.Result
}

func (f *frame) read(doc gjson.Result) {
	*f = frame{}
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			f.kind = v.Str
		case "output_index":
			f.output, _ = rawjson.Integer(v)
		case "content_index":
			f.content, _ = rawjson.Integer(v)
		case "summary_index":
			f.summary, _ = rawjson.Integer(v)
		case "delta":
			f.delta = v
		case "text":
			f.text = v
		case "refusal":
			f.refusal = v
		case "arguments":
			f.arguments = v
		case "input":
			f.args = v
		case "item":
			f.item = v
		case "part":
			f.part = v
		case "response":
			f.response = v
		case "error":
			f.err = v
		}
		return true
	})
}

// decode reads one event's facts and gives its name. An event that is not what the
// dialect says fails the attempt: it is never skipped as if nothing were missing
// (S14).
func (d *streamDecoder) decode(event sse.Event) (string, *failure.Failure) {
	doc, ok := rawjson.Parse(event.Data)
	if !ok {
		return "", payload("malformed_event")
	}
	e := &d.event
	e.read(doc)
	if e.kind == "" {
		e.kind = string(event.Name)
	}
	if e.kind == "error" || (e.response.Type == gjson.Null && rawjson.Truthy(e.err)) {
		return "", inStream(event.Data)
	}
	kind, known := eventKinds[e.kind]
	switch {
	case e.kind == "":
		return "", payload("malformed_event")
	case known:
		if bad := kind.read(d, e); bad != nil {
			return "", bad
		}
	default:
		d.unknown(e)
	}
	if len(d.facts.events) == 0 {
		d.facts.event(neutral.Event{Kind: neutral.Opaque})
	}
	if known {
		return kind.name, nil
	}
	return string(append([]byte(nil), e.kind...)), nil
}

// unknown is an event of a tool that runs at the provider, or of tomorrow. A piece of
// it is output of a kind that has no word here; what only announces is not.
func (d *streamDecoder) unknown(e *frame) {
	switch {
	case e.kind == "response.image_generation_call.partial_image":
		d.facts.event(neutral.Event{Kind: neutral.Image})
	case e.delta.Exists():
		d.facts.event(neutral.Event{Kind: neutral.Structure})
	}
}

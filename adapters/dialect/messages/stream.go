package messages

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
func (Outbound) NewStream(_ *dialect.Request, body io.Reader) dialect.StreamDecoder {
	return &streamDecoder{frames: sse.NewReader(body, 0)}
}

// streamDecoder follows the protocol of one stream and notices when an answer is not
// one (S4).
type streamDecoder struct {
	frames *sse.Reader
	tally  neutral.Tally
	reader answerReader
	// begun, finished and stopped are message_start, a stop reason and message_stop.
	begun, finished, stopped bool
}

// maxArena is how much memory for unescaped text a stream keeps (S9).
const maxArena = 64 << 10

// Finished reports whether the answer has given its stop reason.
func (d *streamDecoder) Finished() bool { return d.finished }

// Tally is what was read so far.
func (d *streamDecoder) Tally() *neutral.Tally { return &d.tally }

// Ready reports whether the next chunk, or the end, has already come.
func (d *streamDecoder) Ready() bool { return d.stopped || d.frames.Ready() }

// Next reads the next chunk. Nothing is read behind message_stop: a provider that
// leaves the connection open keeps no caller waiting (S14).
func (d *streamDecoder) Next(c *neutral.Chunk) error {
	if d.stopped {
		return io.EOF
	}
	frame, err := d.frames.Next()
	if err != nil {
		return d.end(err)
	}
	if d.finished && bytes.HasPrefix(frame.Data, []byte("[DONE]")) {
		// Relays that speak several dialects end them all alike.
		return d.end(io.EOF)
	}
	d.reader.reset(frame.Data)
	name, f := d.decode(frame)
	if f != nil {
		return f
	}
	*c = neutral.Chunk{Dialect: neutral.Messages, Name: name, Raw: frame.Data, Events: d.reader.events}
	d.tally.Add(c)
	if name == "message_stop" {
		// The checks come before the chunk, which is a success terminator to its reader.
		if f := d.complete(); f != nil {
			return f
		}
		d.stopped = true
	}
	return nil
}

// end names the end of the body. A stop reason is enough to be complete: what became
// of the connection after it no longer matters (S14).
func (d *streamDecoder) end(err error) error {
	if d.finished {
		if f := d.complete(); f != nil {
			return f
		}
		return io.EOF
	}
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

func truncated() *failure.Failure {
	return &failure.Failure{Class: failure.StreamTruncated, Code: "no_terminator", PossiblyBilled: true}
}

// complete judges an answer that its provider calls complete.
func (d *streamDecoder) complete() *failure.Failure {
	switch {
	case !d.finished:
		return truncated()
	case d.reader.cut() && d.tally.Stop != neutral.StopLength && d.tally.Stop != neutral.StopRefusal:
		return cutCall()
	case empty(&d.tally):
		return &failure.Failure{Class: failure.EmptyCompletion, Code: "no_output"}
	}
	return nil
}

// decode reads one frame's facts. A frame that is not what the dialect says fails the
// attempt: it is never skipped as if nothing were missing (S14). An event of a kind
// that is not known passes.
func (d *streamDecoder) decode(frame sse.Event) (name string, f *failure.Failure) {
	doc, ok := rawjson.Parse(frame.Data)
	e := readEnvelope(doc)
	switch {
	case e.kind == "error" || string(frame.Name) == "error":
		return "", inStream(frame.Data)
	case !ok:
		return "", payload("malformed_event")
	}
	r := &d.reader
	switch e.kind {
	case "message_start":
		return "message_start", d.start(e.message)
	case "content_block_start":
		name, f = "content_block_start", r.blockStart(&e)
	case "content_block_delta":
		name, f = "content_block_delta", r.blockDelta(&e)
	case "content_block_stop":
		name, f = "content_block_stop", r.blockStop(&e)
	case "message_delta":
		name, f = "message_delta", d.delta(&e)
	case "message_stop":
		name = "message_stop"
	case "ping":
		r.add(neutral.Event{Kind: neutral.Ping})
		return "ping", nil
	default:
		// Its own name goes on with it: clients dispatch on that.
		r.add(neutral.Event{Kind: neutral.Opaque})
		return nameOf(frame, e.kind), nil
	}
	if f == nil && !d.begun {
		f = payload("no_message_start")
	}
	if f == nil && len(r.events) == 0 {
		r.add(neutral.Event{Kind: neutral.Opaque})
	}
	return name, f
}

func nameOf(frame sse.Event, kind string) string {
	if kind == "" {
		return string(frame.Name)
	}
	return kind
}

// start reads message_start. It may carry content and a stop reason already: a turn
// that a provider's own code asked for comes whole.
func (d *streamDecoder) start(message gjson.Result) *failure.Failure {
	if d.begun {
		return payload("second_message_start")
	}
	if !message.IsObject() {
		return payload("malformed_message_start")
	}
	d.begun = true
	d.reader.add(neutral.Event{Kind: neutral.Start})
	if f := d.reader.content(rawjson.Member(message, "content")); f != nil {
		return f
	}
	return d.close(message, rawjson.Member(message, "usage"))
}

func (d *streamDecoder) delta(e *envelope) *failure.Failure {
	if !rawjson.IsNull(e.delta) && !e.delta.IsObject() {
		return payload("malformed_delta")
	}
	return d.close(e.delta, e.usage)
}

// close takes a stop reason and the usage that came with it.
func (d *streamDecoder) close(reason, usage gjson.Result) *failure.Failure {
	finished, f := d.reader.stop(reason)
	d.finished = d.finished || finished
	d.reader.usage(usage)
	return f
}

// envelope are the members of an event. They are read in one pass: most events carry
// a few letters, and to go over them is what a token costs.
type envelope struct {
	kind                                string
	index, block, delta, message, usage gjson.Result
}

func readEnvelope(doc gjson.Result) (e envelope) {
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			e.kind = v.Str
		case "index":
			e.index = v
		case "content_block":
			e.block = v
		case "delta":
			e.delta = v
		case "message":
			e.message = v
		case "usage":
			e.usage = v
		}
		return true
	})
	return e
}

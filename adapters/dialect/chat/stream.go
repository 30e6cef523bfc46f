package chat

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
	d := &streamDecoder{frames: sse.NewReader(body, 0), want: 1}
	if req != nil {
		d.want = max(1, req.Choices)
	}
	return d
}

// streamDecoder reads chunks and notices when an answer is not one (S4).
type streamDecoder struct {
	frames *sse.Reader
	tally  neutral.Tally
	// want is how many choices were asked for, finished how many have ended.
	want, finished int
	choices        choices
	// Memory that is used again for each chunk.
	events []neutral.Event
	arena  []byte
}

// choices are the answers of one stream by their index.
type choices struct{ list []choice }

type choice struct {
	index   int64
	ended   bool
	sawTool bool
	calls   calls
}

// at is the choice with an index, or nil when the index is none.
func (c *choices) at(index int64) *choice {
	for i := range c.list {
		if c.list[i].index == index {
			return &c.list[i]
		}
	}
	if index < 0 || index >= maxChoices {
		return nil
	}
	c.list = append(c.list, choice{index: index})
	return &c.list[len(c.list)-1]
}

// Finished reports whether every choice has given its finish reason.
func (d *streamDecoder) Finished() bool { return d.finished >= d.want }

// Tally is what was read so far.
func (d *streamDecoder) Tally() *neutral.Tally { return &d.tally }

// Ready reports whether the next chunk has already come.
func (d *streamDecoder) Ready() bool { return d.frames.Ready() }

// Next reads the next chunk.
func (d *streamDecoder) Next(c *neutral.Chunk) error {
	frame, err := d.frames.Next()
	if err != nil {
		return d.end(err)
	}
	if bytes.HasPrefix(frame.Data, []byte("[DONE]")) {
		return d.done()
	}
	d.events, d.arena = d.events[:0], d.arena[:0]
	if cap(d.arena) > maxArena {
		d.arena = nil
	}
	if f := d.decode(frame); f != nil {
		return f
	}
	*c = neutral.Chunk{Dialect: neutral.Chat, Raw: frame.Data, Events: d.events}
	d.tally.Add(c)
	return nil
}

// maxArena is how much memory for unescaped text a stream keeps (S9).
const maxArena = 64 << 10

// end names the end of the body. A finish reason is enough to be complete: [DONE] is
// a courtesy, and what became of the connection after it no longer matters (S14).
func (d *streamDecoder) end(err error) error {
	if d.Finished() {
		return d.done()
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
	return &failure.Failure{Class: failure.StreamTruncated, Code: "no_terminator", PossiblyBilled: true}
}

// done is the end of an answer that its provider calls complete.
func (d *streamDecoder) done() error {
	for i := range d.choices.list {
		if c := &d.choices.list[i]; !c.ended && c.calls.cut() {
			return cutCall()
		}
	}
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

func cutCall() *failure.Failure {
	return &failure.Failure{Class: failure.StreamTruncated, Code: "tool_call_cut", PossiblyBilled: true}
}

// decode reads one frame's facts into d.events. A frame that is not what the
// dialect says fails the attempt: it is never skipped as if nothing were missing
// (S14).
func (d *streamDecoder) decode(frame sse.Event) *failure.Failure {
	doc, ok := rawjson.Parse(frame.Data)
	if !ok {
		return payload("malformed_event")
	}
	var f *failure.Failure
	var groq gjson.Result
	reported := false
	signs := errorSigns{found: string(frame.Name) == "error"}
	doc.ForEach(func(key, v gjson.Result) bool {
		signs.note(key.Str, v)
		switch key.Str {
		case "choices":
			if f == nil {
				f = d.readChoices(frame.Data, v)
			}
		case "usage":
			reported = reported || v.IsObject()
			d.usage(v)
		case "x_groq":
			groq = v.Get("usage")
		}
		return true
	})
	if signs.error() {
		// Whatever else the frame says, also if that is malformed.
		return inStream([]byte(doc.Raw))
	}
	if !reported {
		// Groq reported here alone until it had the common field too.
		d.usage(groq)
	}
	if len(d.events) == 0 {
		d.event(neutral.Event{Kind: neutral.Opaque})
	}
	return f
}

func (d *streamDecoder) event(e neutral.Event) { d.events = append(d.events, e) }

func (d *streamDecoder) usage(v gjson.Result) {
	if v.IsObject() {
		d.event(neutral.Event{Kind: neutral.Usage, Usage: readUsage(v)})
	}
}

func (d *streamDecoder) readChoices(doc []byte, list gjson.Result) (f *failure.Failure) {
	if !list.IsArray() {
		if rawjson.IsNull(list) {
			return nil
		}
		return payload("malformed_choices")
	}
	list.ForEach(func(_, v gjson.Result) bool {
		f = d.readChoice(doc, v)
		return f == nil
	})
	return f
}

func (d *streamDecoder) readChoice(doc []byte, v gjson.Result) *failure.Failure {
	if !v.IsObject() {
		return payload("malformed_choice")
	}
	var delta, reason gjson.Result
	var index int64
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "index":
			index, _ = rawjson.Integer(v)
		case "delta":
			delta = v
		case "finish_reason":
			reason = v
		}
		return true
	})
	c := d.choices.at(index)
	if c == nil {
		return payload("choice_index")
	}
	w := message{doc: doc, choice: c, events: d.events, arena: d.arena}
	f := w.read(delta)
	if f == nil {
		f = d.close(c, reason, &w)
	}
	d.events, d.arena = w.events, w.arena
	return f
}

// close takes a choice's finish reason. Some providers give one with every chunk;
// output after it takes it back.
func (d *streamDecoder) close(c *choice, reason gjson.Result, w *message) *failure.Failure {
	if rawjson.IsNull(reason) || (reason.Type == gjson.String && reason.Str == "") {
		if c.ended && w.semantic() {
			c.ended = false
			d.finished--
		}
		return nil
	}
	if reason.Type != gjson.String {
		return payload("malformed_finish_reason")
	}
	f := w.stop(reason.Str)
	if f == nil && !c.ended {
		c.ended = true
		d.finished++
	}
	return f
}

package gemini

import (
	"errors"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// DecodeWhole reads a whole reply. The answer that comes with an empty completion has
// its usage: emptiness is billed.
func (Outbound) DecodeWhole(req *dialect.Request, body []byte) (neutral.Answer, *failure.Failure) {
	doc, ok := rawjson.Parse(body)
	switch {
	case !ok && stated(body).given():
		// A stream as a list, with an error in it.
		return neutral.Answer{}, inBody(body, failure.ServerError)
	case !ok:
		return neutral.Answer{}, payload("not_json")
	case doc.Get("error").IsObject():
		return neutral.Answer{}, inBody(body, failure.ServerError)
	case !doc.Get("candidates").IsArray() && !doc.Get("promptFeedback").IsObject():
		return neutral.Answer{}, payload("no_candidates")
	}
	r := newReader(req)
	if f := r.read(body); f != nil {
		return neutral.Answer{}, f
	}
	if r.open != nil {
		return neutral.Answer{}, cutCall()
	}
	c := collector{}
	c.add(&neutral.Chunk{Events: r.events})
	answer := c.answer()
	answer.Raw = body
	if answer.Empty {
		return answer, &failure.Failure{Class: failure.EmptyCompletion, Code: "no_output"}
	}
	return answer, nil
}

// NewAggregate puts a stream back together for a caller who asked for a whole answer
// (S11). It has no body of this dialect: no caller speaks it.
func (Outbound) NewAggregate(*dialect.Request) dialect.Aggregate { return &aggregate{} }

// errNotGenerate is a chunk of another dialect: a fault of the caller of this package.
var errNotGenerate = errors.New("gemini: a chunk of another dialect")

type aggregate struct{ collector }

// Add joins a chunk on.
func (a *aggregate) Add(c *neutral.Chunk) error {
	if c.Dialect != neutral.Generate {
		return errNotGenerate
	}
	a.add(c)
	return nil
}

// Answer is the whole reply.
func (a *aggregate) Answer() (neutral.Answer, error) {
	answer := a.answer()
	answer.Streamed = true
	return answer, nil
}

// collector makes parts of events.
type collector struct {
	parts []neutral.Part
	// text is the last part's text, or its call's arguments, while they still grow.
	text  strings.Builder
	tally neutral.Tally
}

func (c *collector) add(chunk *neutral.Chunk) {
	c.tally.Add(chunk)
	for i := range chunk.Events {
		switch e := &chunk.Events[i]; e.Kind {
		case neutral.Text:
			c.grow(neutral.TextPart, e.Text)
		case neutral.Reasoning:
			c.grow(neutral.ReasoningPart, e.Text)
		case neutral.ToolCallStart:
			c.begin(neutral.Part{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: e.Tool.ID, Name: strings.Clone(e.Tool.Name)}})
		case neutral.ToolCallDelta:
			c.text.Write(e.Text)
		case neutral.ReasoningSeal:
			c.seal(e.Seal)
		case neutral.Image:
			c.begin(neutral.Part{Kind: neutral.ImagePart})
		}
	}
}

// begin adds a part, after the text of the one before.
func (c *collector) begin(p neutral.Part) {
	c.settle()
	c.parts = append(c.parts, p)
}

// grow adds to the last part if it is of the kind and not sealed.
func (c *collector) grow(kind neutral.PartKind, text []byte) {
	if n := len(c.parts); n == 0 || c.parts[n-1].Kind != kind || c.parts[n-1].Opaque != (neutral.OpaqueReasoning{}) {
		c.begin(neutral.Part{Kind: kind})
	}
	c.text.Write(text)
}

// seal closes the reasoning before it, or stands alone.
func (c *collector) seal(s neutral.OpaqueReasoning) {
	if n := len(c.parts); n == 0 || c.parts[n-1].Kind != neutral.ReasoningPart || c.parts[n-1].Opaque != (neutral.OpaqueReasoning{}) {
		c.begin(neutral.Part{Kind: neutral.ReasoningPart})
	}
	c.parts[len(c.parts)-1].Opaque = s
}

// settle gives the last part its text.
func (c *collector) settle() {
	n := len(c.parts)
	if n == 0 || c.text.Len() == 0 {
		return
	}
	if last := &c.parts[n-1]; last.Kind == neutral.ToolCallPart {
		last.Call.Arguments = c.text.String()
	} else {
		last.Text = c.text.String()
	}
	c.text.Reset()
}

func (c *collector) answer() neutral.Answer {
	c.settle()
	return neutral.Answer{
		Dialect: neutral.Generate, Output: c.parts, Usage: c.tally.Usage, Stop: c.tally.Stop,
		FirstOutput: c.tally.FirstOutput, ToolCalls: c.tally.ToolCalls, OutputBytes: c.tally.OutputBytes,
		Empty: empty(&c.tally),
	}
}

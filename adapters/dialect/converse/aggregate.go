package converse

import (
	"errors"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// NewAggregate puts a stream back together for a caller who asked for a whole answer
// (S11).
func (Outbound) NewAggregate(*dialect.Request) dialect.Aggregate { return &aggregate{} }

// errNotAggregable is output whose pieces have no known way to be joined.
var errNotAggregable = errors.New("converse: output that cannot be put together from a stream")

// aggregate joins what a stream's events say. There is no body in this dialect's own
// words: nobody would read it.
type aggregate struct {
	parts []joined
	// calls are the places of the tool calls in parts.
	calls []int
	tally neutral.Tally
}

// joined is a part whose text still grows. A seal closes it.
type joined struct {
	part   neutral.Part
	text   []byte
	closed bool
}

// Add joins a chunk on.
func (a *aggregate) Add(c *neutral.Chunk) error {
	a.tally.Add(c)
	for i := range c.Events {
		switch e := &c.Events[i]; e.Kind {
		case neutral.Text:
			a.grow(neutral.TextPart, e.Text)
		case neutral.Reasoning:
			a.grow(neutral.ReasoningPart, e.Text)
		case neutral.ReasoningSeal:
			a.seal(e.Seal)
		case neutral.ToolCallStart:
			a.calls = append(a.calls, len(a.parts))
			call := neutral.ToolCall{ID: e.Tool.ID, Name: e.Tool.Name}
			a.parts = append(a.parts, joined{part: neutral.Part{Kind: neutral.ToolCallPart, Call: call}})
		case neutral.ToolCallDelta:
			p := &a.parts[a.calls[e.Index]]
			p.text = append(p.text, e.Text...)
		case neutral.Image, neutral.Structure, neutral.Refusal:
			return errNotAggregable
		}
	}
	return nil
}

// grow adds to the last part if it is of the same kind and still open, or begins one.
func (a *aggregate) grow(kind neutral.PartKind, text []byte) {
	if len(text) == 0 {
		return
	}
	last := len(a.parts) - 1
	if last < 0 || a.parts[last].part.Kind != kind || a.parts[last].closed {
		a.parts = append(a.parts, joined{part: neutral.Part{Kind: kind}})
		last++
	}
	a.parts[last].text = append(a.parts[last].text, text...)
}

func (a *aggregate) seal(seal neutral.OpaqueReasoning) {
	last := len(a.parts) - 1
	if seal.Encrypted != "" || last < 0 || a.parts[last].part.Kind != neutral.ReasoningPart || a.parts[last].closed {
		// Withheld reasoning, or a signature without the text that it signs.
		a.parts = append(a.parts, joined{part: neutral.Part{Kind: neutral.ReasoningPart}})
		last = len(a.parts) - 1
	}
	a.parts[last].part.Opaque, a.parts[last].closed = seal, true
}

// Answer is the whole reply.
func (a *aggregate) Answer() (neutral.Answer, error) {
	answer := neutral.Answer{Dialect: neutral.Converse, Usage: a.tally.Usage, Streamed: true}
	for i := range a.parts {
		p := a.parts[i].part
		switch text := string(a.parts[i].text); {
		case p.Kind != neutral.ToolCallPart:
			p.Text = text
		case text == "":
			p.Call.Arguments = "{}"
		default:
			p.Call.Arguments = text
		}
		answer.Output = append(answer.Output, p)
	}
	answer, _ = finish(answer, &a.tally)
	return answer, nil
}

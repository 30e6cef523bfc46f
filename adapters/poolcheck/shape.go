package poolcheck

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/messages"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/domain/equivalence"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// maxAnswerBytes bounds what is kept of one answer while it is looked at: a thousand
// times what the set asks for. A provider that ignores every limit must not fill memory.
const maxAnswerBytes = 4 << 20

// reading is an answer while it is read. Nothing of it but its shape is kept.
type reading struct {
	kinds map[neutral.Kind]bool
	text  strings.Builder
	calls []*reader
	bytes int
	stop  neutral.StopReason
	usage usage.Usage
}

// reader is one tool call as it comes.
type reader struct {
	name      string
	arguments strings.Builder
}

// readStream reads an answer to its end. What was counted until a failure is in the
// reading.
func readStream(reply *provider.Reply) (*reading, *failure.Failure) {
	r := &reading{kinds: map[neutral.Kind]bool{}}
	for {
		chunk, err := reply.Next()
		tally := reply.Tally()
		r.stop, r.usage = tally.Stop, tally.Usage
		switch f, failed := errors.AsType[*failure.Failure](err); {
		case errors.Is(err, io.EOF):
			return r, nil
		case failed:
			return r, f
		case err != nil:
			return r, unreadable(reply)
		}
		for i := range chunk.Events {
			if !r.take(&chunk.Events[i]) {
				return r, unreadable(reply)
			}
		}
	}
}

func unreadable(reply *provider.Reply) *failure.Failure {
	return &failure.Failure{Class: failure.BadPayload, Code: "answer_not_readable", Status: reply.Status(), PossiblyBilled: true}
}

// take takes an event in. It reports whether the answer can still be one: calls are in
// order, and it is no longer than anything that was asked for.
func (r *reading) take(e *neutral.Event) bool {
	if e.Semantic() {
		r.kinds[kindOf(e.Kind)] = true
	}
	r.bytes += len(e.Text) + len(e.Tool.Name)
	switch e.Kind {
	case neutral.Text:
		r.text.Write(e.Text)
	case neutral.ToolCallStart:
		if e.Index != len(r.calls) {
			return false
		}
		r.calls = append(r.calls, &reader{name: strings.Clone(e.Tool.Name)})
	case neutral.ToolCallDelta:
		if e.Index >= len(r.calls) {
			return false
		}
		r.calls[e.Index].arguments.Write(e.Text)
	}
	return r.bytes <= maxAnswerBytes
}

// kindOf joins the events that one kind of output comes in.
func kindOf(k neutral.Kind) neutral.Kind {
	if k == neutral.ToolCallDelta {
		return neutral.ToolCallStart
	}
	return k
}

// readWhole reads an answer that comes in one piece, in the words of the dialect that
// the set is written in, as a caller of the gateway would get it.
func readWhole(req *dialect.Request, reply *provider.Reply) (*reading, *failure.Failure) {
	r := &reading{kinds: map[neutral.Kind]bool{}}
	answer, f := reply.Answer()
	r.stop, r.usage = answer.Stop, answer.Usage
	if f != nil {
		return r, f
	}
	body, err := messages.Inbound{}.Whole(req, &answer, dialect.Meta{Model: req.Model})
	if err != nil {
		return r, unreadable(reply)
	}
	for _, block := range gjson.GetBytes(body, "content").Array() {
		switch block.Get("type").Str {
		case "text":
			r.kinds[neutral.Text] = true
			r.text.WriteString(block.Get("text").Str)
		case "thinking":
			r.kinds[neutral.Reasoning] = true
		case "tool_use":
			r.kinds[neutral.ToolCallStart] = true
			call := &reader{name: block.Get("name").Str}
			call.arguments.WriteString(block.Get("input").Raw)
			r.calls = append(r.calls, call)
		}
	}
	if answer.Stop == neutral.StopRefusal || answer.FirstOutput == neutral.Refusal {
		r.kinds[neutral.Refusal] = true
	}
	return r, nil
}

// shape is what is kept of the answer to a case.
func (r *reading) shape(c *Case) *equivalence.Shape {
	s := &equivalence.Shape{Stop: string(r.stop), Usage: r.usage}
	for kind := range r.kinds {
		s.Output = append(s.Output, kind.String())
	}
	slices.Sort(s.Output)
	for _, call := range r.calls {
		valid, offered := c.Tools[call.name]
		if !offered {
			s.Calls = append(s.Calls, equivalence.Call{Tool: equivalence.OtherTool})
			continue
		}
		s.Calls = append(s.Calls, equivalence.Call{Tool: call.name, Valid: valid([]byte(call.arguments.String()))})
	}
	slices.SortFunc(s.Calls, func(a, b equivalence.Call) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), compareBool(a.Valid, b.Valid))
	})
	if c.Structured != nil {
		s.Structured = new(c.Structured([]byte(r.text.String())))
	}
	s.Overrun = c.StopAt != "" && strings.Contains(r.text.String(), c.StopAt)
	return s
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

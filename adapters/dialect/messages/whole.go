package messages

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// DecodeWhole reads a whole reply. The answer that comes with an empty completion
// has its usage: emptiness is billed.
func (Outbound) DecodeWhole(req *dialect.Request, body []byte) (neutral.Answer, *failure.Failure) {
	doc, ok := rawjson.Parse(body)
	if !ok {
		return neutral.Answer{}, payload("not_json")
	}
	if rawjson.Member(doc, "type").Str == "error" {
		return neutral.Answer{}, inBody(body, failure.ServerError)
	}
	content := rawjson.Member(doc, "content")
	if !content.IsArray() {
		return neutral.Answer{}, payload("no_content")
	}
	r := answerReader{doc: body}
	f := r.content(content)
	if f == nil {
		_, f = r.stop(doc)
	}
	if f != nil {
		return neutral.Answer{}, f
	}
	r.usage(rawjson.Member(doc, "usage"))
	var tally neutral.Tally
	tally.Add(&neutral.Chunk{Events: r.events})
	answer := neutral.Answer{
		Dialect: neutral.Messages, Raw: body, Usage: tally.Usage,
		Stop: tally.Stop, FirstOutput: tally.FirstOutput, ToolCalls: tally.ToolCalls, OutputBytes: tally.OutputBytes,
		Empty: empty(&tally),
	}
	if answer.FirstOutput == neutral.Opaque && answer.Stop == neutral.StopRefusal {
		// A refusal without a word of explanation is one all the same.
		answer.FirstOutput = neutral.Refusal
	}
	if answer.Empty {
		return answer, &failure.Failure{Class: failure.EmptyCompletion, Code: "no_output"}
	}
	if req == nil || req.Dialect != neutral.Messages {
		answer.Output = output(doc)
	}
	return answer, nil
}

// output is the content for a caller of another dialect. What a provider's own tools
// did has no form there.
func output(doc gjson.Result) (parts []neutral.Part) {
	d := decoder{out: &neutral.Request{}}
	rawjson.Member(doc, "content").ForEach(func(_, b gjson.Result) bool {
		switch b.Get("type").Str {
		case blockText, blockThinking, blockRedacted, blockToolUse:
			if part, ok := d.simple("", b); ok {
				parts = append(parts, kept(part))
			}
		}
		return true
	})
	if explanation := doc.Get("stop_details.explanation").Str; doc.Get("stop_reason").Str == "refusal" && explanation != "" {
		parts = append(parts, neutral.Part{Kind: neutral.RefusalPart, Text: strings.Clone(explanation)})
	}
	return parts
}

// kept is a part in memory of its own: a reply's body may be read into a buffer that
// is used again.
func kept(p neutral.Part) neutral.Part {
	p.Text = strings.Clone(p.Text)
	p.Call.ID, p.Call.Name = strings.Clone(p.Call.ID), strings.Clone(p.Call.Name)
	p.Call.Arguments = strings.Clone(p.Call.Arguments)
	p.Opaque.Signature, p.Opaque.Redacted = strings.Clone(p.Opaque.Signature), strings.Clone(p.Opaque.Redacted)
	return p
}

// Whole is the provider's own body with the model's name changed (N23), or a message
// made of a foreign answer.
func (Inbound) Whole(_ *dialect.Request, answer *neutral.Answer, meta dialect.Meta) ([]byte, error) {
	if answer.Dialect != neutral.Messages {
		return compose(answer, meta)
	}
	doc, ok := rawjson.Parse(answer.Raw)
	if !ok {
		return nil, errNotMessages
	}
	edits := renameModel(nil, doc, meta.Model)
	return rawjson.Splice(make([]byte, 0, len(answer.Raw)+len(meta.Model)+16), answer.Raw, edits), nil
}

// compose writes a whole message of an answer of another dialect.
func compose(answer *neutral.Answer, meta dialect.Meta) ([]byte, error) {
	w := writer{ids: newCallIDs()}
	w.raw(`{"id":`).quoted(messageID(meta)).raw(`,"type":"message","role":"assistant","model":`).quoted(meta.Model)
	w.raw(`,"content":[`)
	n := 0
	for i := range answer.Output {
		p := &answer.Output[i]
		if !said(p) {
			continue
		}
		if p.Kind == neutral.ToolCallPart && !isInput(p.Call.Arguments) {
			return nil, errNotInput
		}
		w.comma(n)
		n++
		if p.Kind == neutral.ReasoningPart && p.Opaque.Redacted == "" {
			w.raw(`{"type":"thinking","thinking":`).quoted(p.Text).raw(`,"signature":`).quoted(sealOf(p)).raw(`}`)
			continue
		}
		w.part(p)
	}
	if w.err != nil {
		return nil, w.err
	}
	w.raw(`],"stop_reason":`).quoted(stopWord(answer.Stop, answer.FirstOutput, answer.ToolCalls > 0)).raw(`,"stop_sequence":null,"usage":`)
	w.dst = appendUsage(w.dst, answer.Usage, meta.InputTokens, seenTokens(answer.OutputBytes))
	return append(w.dst, '}'), nil
}

// said reports whether a part of an answer has a block here. Images and audio have
// none; a blank text is one that no later turn could carry.
func said(p *neutral.Part) bool {
	switch p.Kind {
	case neutral.TextPart, neutral.RefusalPart:
		return p.Text != ""
	case neutral.ToolCallPart:
		return true
	case neutral.ReasoningPart:
		return p.Text != "" || p.Opaque.Issuer != ""
	default:
		return false
	}
}

func sealOf(p *neutral.Part) string {
	if p.Opaque.Issuer == "" {
		return ""
	}
	return signature(p.Opaque)
}

// errNotInput is a tool call whose arguments are no JSON object: this dialect has
// nothing else in their place, and to change them would run another call than the
// model made.
var errNotInput = fmt.Errorf("messages: a tool call's arguments are no JSON object")

// messageID is ours: the provider's own has another form.
func messageID(meta dialect.Meta) string { return "msg_" + meta.RequestID }

package converse

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// DecodeWhole reads a whole reply. No caller speaks this dialect, so its content is
// always decoded. The answer that comes with an empty completion has its usage:
// emptiness is billed.
func (Outbound) DecodeWhole(_ *dialect.Request, body []byte) (neutral.Answer, *failure.Failure) {
	doc, ok := rawjson.Parse(body)
	if !ok {
		return neutral.Answer{}, payload("not_json")
	}
	content := doc.Get("output.message.content")
	if !content.IsArray() {
		if doc.Get("message").Type == gjson.String || doc.Get("__type").Exists() {
			return neutral.Answer{}, inBody("", body, failure.ServerError)
		}
		return neutral.Answer{}, payload("no_content")
	}
	answer := neutral.Answer{Dialect: neutral.Converse, Raw: body}
	answer.Output = outputOf(content)
	if u := doc.Get("usage"); u.IsObject() {
		answer.Usage = readUsage(u)
	}
	tally := tallyOf(answer.Output)
	if reason := doc.Get("stopReason"); reason.Exists() {
		stop, f := stopOf(reason.Str, tally.ToolCalls)
		if f != nil {
			return neutral.Answer{}, f
		}
		tally.Stop = stop
	}
	return finish(answer, &tally)
}

// finish fills an answer from its tally.
func finish(answer neutral.Answer, tally *neutral.Tally) (neutral.Answer, *failure.Failure) {
	answer.Stop, answer.FirstOutput = tally.Stop, tally.FirstOutput
	answer.ToolCalls, answer.OutputBytes = tally.ToolCalls, tally.OutputBytes
	if answer.Empty = empty(tally); answer.Empty {
		return answer, &failure.Failure{Class: failure.EmptyCompletion, Code: "no_output"}
	}
	return answer, nil
}

// outputOf reads the blocks of a message. Its strings are copies: an answer outlives
// the body.
func outputOf(content gjson.Result) []neutral.Part {
	var parts []neutral.Part
	text := func(v gjson.Result) {
		if v.Type == gjson.String && v.Str != "" {
			parts = append(parts, neutral.Part{Kind: neutral.TextPart, Text: strings.Clone(v.Str)})
		}
	}
	content.ForEach(func(_, block gjson.Result) bool {
		block.ForEach(func(key, v gjson.Result) bool {
			switch key.Str {
			case "text":
				text(v)
			case "citationsContent":
				v.Get("content").ForEach(func(_, v gjson.Result) bool {
					text(v.Get("text"))
					return true
				})
			case "toolUse":
				if !isServerTool(v) {
					parts = append(parts, callPart(v))
				}
			case "reasoningContent":
				parts = append(parts, reasoningPart(v))
			case "image":
				parts = append(parts, imagePart(v))
			}
			return true
		})
		return true
	})
	return parts
}

func callPart(v gjson.Result) neutral.Part {
	tool := toolOf(v)
	arguments := strings.Clone(v.Get("input").Raw)
	if arguments == "" {
		arguments = "{}"
	}
	return neutral.Part{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: tool.ID, Name: tool.Name, Arguments: arguments}}
}

func reasoningPart(v gjson.Result) neutral.Part {
	p := neutral.Part{Kind: neutral.ReasoningPart, Text: strings.Clone(v.Get("reasoningText.text").Str)}
	p.Opaque.Signature = strings.Clone(v.Get("reasoningText.signature").Str)
	p.Opaque.Encrypted = strings.Clone(v.Get("redactedContent").Str)
	if p.Opaque != (neutral.OpaqueReasoning{}) {
		p.Opaque.Issuer = neutral.Converse
	}
	return p
}

func imagePart(v gjson.Result) neutral.Part {
	return neutral.Part{Kind: neutral.ImagePart, Media: neutral.Media{
		Type: "image/" + v.Get("format").Str, Base64: strings.Clone(v.Get("source.bytes").Str),
	}}
}

// tallyOf counts a whole answer's output as a stream's is counted.
func tallyOf(parts []neutral.Part) neutral.Tally {
	var t neutral.Tally
	for i := range parts {
		var events []neutral.Event
		switch p := &parts[i]; p.Kind {
		case neutral.TextPart:
			events = append(events, neutral.Event{Kind: neutral.Text, Text: []byte(p.Text)})
		case neutral.ReasoningPart:
			events = append(events, neutral.Event{Kind: neutral.Reasoning, Text: []byte(p.Text)})
		case neutral.ImagePart:
			events = append(events, neutral.Event{Kind: neutral.Image})
		case neutral.ToolCallPart:
			events = append(events,
				neutral.Event{Kind: neutral.ToolCallStart, Tool: neutral.Tool{Name: p.Call.Name}},
				neutral.Event{Kind: neutral.ToolCallDelta, Text: []byte(p.Call.Arguments)})
		}
		t.Add(&neutral.Chunk{Events: events})
	}
	return t
}

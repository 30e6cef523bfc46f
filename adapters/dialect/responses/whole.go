package responses

import (
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
	if bad := ended(doc, body); bad != nil {
		return neutral.Answer{}, bad
	}
	f := facts{doc: body, paragraphs: foreign(req)}
	stop, bad := f.response(doc, false)
	if bad != nil {
		return neutral.Answer{}, bad
	}
	tally := neutral.Tally{}
	tally.Add(&neutral.Chunk{Events: append(f.events, neutral.Event{Kind: neutral.Stop, Stop: stop})})
	answer := neutral.Answer{
		Dialect: neutral.Responses, Raw: body, Usage: tally.Usage,
		Stop: tally.Stop, FirstOutput: tally.FirstOutput, ToolCalls: tally.ToolCalls, OutputBytes: tally.OutputBytes,
		Seal:  tally.Seal,
		Empty: empty(&tally),
	}
	if foreign(req) {
		answer.Output = outputParts(doc.Get("output"))
	}
	if answer.Empty {
		return answer, &failure.Failure{Class: failure.EmptyCompletion, Code: "no_output"}
	}
	return answer, nil
}

// ended refuses a reply that is an error, or a response that has not ended well.
func ended(doc gjson.Result, body []byte) *failure.Failure {
	wrong := func(f *failure.Failure) *failure.Failure {
		if f.Class == failure.StreamErrorEvent {
			f.Class = failure.ServerError
		}
		return f
	}
	if e := doc.Get("error"); rawjson.Truthy(e) || doc.Get("object").Str == "error" || doc.Get("type").Str == "error" {
		return wrong(inStream(body))
	}
	switch status := doc.Get("status").Str; status {
	case "completed", "incomplete", "":
	case "failed", "cancelled":
		return &failure.Failure{Class: failure.ServerError, Code: "response_failed"}
	default:
		// Still being made: nobody asked for a background response.
		return payload("response_not_ended")
	}
	if !doc.Get("output").IsArray() {
		return payload("no_output_list")
	}
	return nil
}

// outputParts are a response's items for a caller of another dialect. Items of tools
// that ran at the provider have no word there (a row of what is dropped).
func outputParts(output gjson.Result) []neutral.Part {
	t := translator{out: &neutral.Request{}}
	output.ForEach(func(_, item gjson.Result) bool {
		switch item.Get("type").Str {
		case "message":
			item.Get("content").ForEach(func(_, part gjson.Result) bool {
				switch part.Get("type").Str {
				case "output_text", "refusal":
					t.add(neutral.Assistant, t.part("", part))
				}
				return true
			})
		case "function_call", "reasoning":
			t.item("", item, map[string]string{})
		}
		return true
	})
	if len(t.out.Messages) == 0 {
		return nil
	}
	return t.out.Messages[0].Parts
}

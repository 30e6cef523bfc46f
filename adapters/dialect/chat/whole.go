package chat

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
	if wrong, ok := errorIn(doc, ""); ok {
		return neutral.Answer{}, inBody(wrong, failure.ServerError)
	}
	list := doc.Get("choices")
	if !list.IsArray() {
		return neutral.Answer{}, payload("no_choices")
	}
	var tally neutral.Tally
	if f := readAnswers(body, list, &tally); f != nil {
		return neutral.Answer{}, f
	}
	answer := neutral.Answer{
		Dialect: neutral.Chat, Raw: body,
		Stop: tally.Stop, FirstOutput: tally.FirstOutput, ToolCalls: tally.ToolCalls, OutputBytes: tally.OutputBytes,
		Empty: empty(&tally),
	}
	if u := doc.Get("usage"); u.IsObject() {
		answer.Usage = readUsage(u)
	}
	if answer.Empty {
		return answer, &failure.Failure{Class: failure.EmptyCompletion, Code: "no_output"}
	}
	if foreign(req) {
		answer.Output = outputOf(list)
	}
	return answer, nil
}

// foreign reports whether the caller speaks another dialect.
func foreign(req *dialect.Request) bool { return req != nil && req.Dialect != neutral.Chat }

// readAnswers counts what the choices of a whole reply say. Each is judged by its
// own calls and reason.
func readAnswers(doc []byte, list gjson.Result, tally *neutral.Tally) (f *failure.Failure) {
	list.ForEach(func(_, v gjson.Result) bool {
		if !v.IsObject() {
			f = payload("malformed_choice")
			return false
		}
		m := message{doc: doc, choice: &choice{}}
		var body, reason gjson.Result
		v.ForEach(func(key, v gjson.Result) bool {
			switch key.Str {
			case "message":
				body = v
			case "finish_reason":
				reason = v
			}
			return true
		})
		if f = m.read(body); f != nil {
			return false
		}
		// Some providers leave the reason out of a whole reply, which its closing
		// brackets show to be complete.
		if reason.Type == gjson.String && reason.Str != "" {
			f = m.stop(reason.Str)
		}
		tally.Add(&neutral.Chunk{Events: m.events})
		return f == nil
	})
	return f
}

// Whole is the provider's own body with the few changes that a caller is owed, or the
// output of another dialect's.
func (Inbound) Whole(_ *dialect.Request, answer *neutral.Answer, meta dialect.Meta) ([]byte, error) {
	if answer.Dialect != neutral.Chat {
		return wholeOf(answer, meta)
	}
	doc, ok := rawjson.Parse(answer.Raw)
	if !ok {
		return nil, errNotChat
	}
	r := rewriter{model: rawjson.Quote(meta.Model), keepUsage: true, member: "message"}
	r.begin(answer.Raw)
	r.object(doc)
	return rawjson.Splice(make([]byte, 0, len(answer.Raw)+len(r.model)), answer.Raw, r.edits), nil
}

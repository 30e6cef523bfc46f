package responses

import (
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Whole is the provider's own body with the model's name put right, or an answer of
// another dialect as a response.
func (in Inbound) Whole(req *dialect.Request, answer *neutral.Answer, meta dialect.Meta) ([]byte, error) {
	r := newReply(req, meta)
	body, err := r.whole(answer)
	if err == nil && in.Store != nil {
		in.save(req, body)
	}
	return body, err
}

func (r *reply) whole(answer *neutral.Answer) ([]byte, error) {
	if answer.Dialect != neutral.Responses {
		var o object
		w := r.items(answer.Output)
		status := statusOf(answer.Stop)
		r.write(&o, response{status: status, output: w.output(), usage: answer.Usage, stop: answer.Stop})
		return o.b, nil
	}
	doc, ok := rawjson.Parse(answer.Raw)
	if !ok {
		return nil, errNotResponses
	}
	edits := r.edits(nil, doc)
	return rawjson.Splice(make([]byte, 0, len(answer.Raw)+len(r.meta.Model)), answer.Raw, edits), nil
}

// items are the parts of an answer as output items.
func (r *reply) items(parts []neutral.Part) *writer {
	w := &writer{open: -1}
	add := func(prefix string, it outItem) {
		it.id, it.status = r.itemID(prefix, len(w.items)), "completed"
		w.items = append(w.items, it)
	}
	calls := 0
	for i := range parts {
		p := &parts[i]
		switch p.Kind {
		case neutral.TextPart:
			add("msg_", outItem{kind: messageItem, text: []byte(p.Text)})
		case neutral.RefusalPart:
			add("msg_", outItem{kind: messageItem, text: []byte(p.Text), refusal: true})
		case neutral.ReasoningPart:
			it := outItem{kind: reasoningItem, text: []byte(p.Text)}
			if p.Opaque != (neutral.OpaqueReasoning{}) {
				it.seal = encryptedContent(p.Opaque)
			}
			add("rs_", it)
		case neutral.ToolCallPart:
			call := neutral.Tool{ID: p.Call.ID, Name: p.Call.Name}
			if call.ID == "" {
				call.ID = r.itemID("call_", calls)
			}
			arguments := p.Call.Arguments
			if arguments == "" {
				arguments = "{}"
			}
			add("fc_", outItem{kind: callItem, call: call, text: []byte(arguments), index: calls})
			calls++
		}
	}
	return w
}

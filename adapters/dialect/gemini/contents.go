package gemini

import (
	"slices"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// contents writes the instructions and the turns. Turns of one side that follow each
// other become one: their alternation is checked.
func (w *writer) contents(n *neutral.Request) {
	system := n.System
	turns := merged(n.Messages)
	if len(turns) == 0 {
		// Instructions alone are a prompt elsewhere; here a prompt needs a turn.
		turns, system = []neutral.Message{{Role: neutral.User, Parts: system}}, nil
	}
	if len(system) > 0 {
		w.key("systemInstruction")
		w.raw(`{"parts":[`)
		for i := range system {
			w.part(&system[i])
		}
		w.raw("]}")
	}
	w.key("contents")
	w.raw("[")
	var calls []neutral.ToolCall
	for i := range turns {
		if turns[i].Role == neutral.Assistant {
			calls = w.modelTurn(turns[i].Parts)
		} else {
			w.userTurn(turns[i].Parts, calls)
			calls = nil
		}
	}
	w.raw("]")
}

// merged joins the turns of one side, and leaves out those with nothing to say.
func merged(messages []neutral.Message) []neutral.Message {
	var turns []neutral.Message
	for _, m := range messages {
		last := len(turns) - 1
		switch {
		case len(m.Parts) == 0:
		case last >= 0 && turns[last].Role == m.Role:
			turns[last].Parts = append(slices.Clip(turns[last].Parts), m.Parts...)
		default:
			turns = append(turns, m)
		}
	}
	return turns
}

// turn writes one turn by means of parts, unless nothing came of it: a turn without
// parts is refused.
func (w *writer) turn(role string, parts func()) {
	begin := len(w.dst)
	w.next()
	w.raw(`{"role":"` + role + `","parts":[`)
	empty := len(w.dst)
	parts()
	if len(w.dst) == empty {
		w.dst = w.dst[:begin]
		return
	}
	w.raw("]}")
}

// userTurn writes what the user's tools gave, in the order of their calls, and then
// the rest. Results have no ids here: their place tells two calls of one tool apart.
// What a result cannot hold, pictures and documents, follows behind.
func (w *writer) userTurn(parts []neutral.Part, calls []neutral.ToolCall) {
	w.turn("user", func() {
		results := resultsOf(parts, calls)
		for _, r := range results {
			w.result(r, calls)
		}
		for _, r := range results {
			w.attachments(r, calls)
		}
		for i := range parts {
			if parts[i].Kind != neutral.ToolResultPart {
				w.part(&parts[i])
			}
		}
	})
}

// resultsOf are the results of a turn in the order of the calls that they answer.
func resultsOf(parts []neutral.Part, calls []neutral.ToolCall) []*neutral.ToolResult {
	var results []*neutral.ToolResult
	for i := range parts {
		if parts[i].Kind == neutral.ToolResultPart {
			results = append(results, &parts[i].Result)
		}
	}
	place := func(r *neutral.ToolResult) int {
		if at := slices.IndexFunc(calls, func(c neutral.ToolCall) bool { return c.ID == r.CallID }); at >= 0 {
			return at
		}
		return len(calls)
	}
	slices.SortStableFunc(results, func(a, b *neutral.ToolResult) int { return place(a) - place(b) })
	return results
}

// nameOf is the name of the tool that a result is of: the result's own, else the
// call's.
func nameOf(r *neutral.ToolResult, calls []neutral.ToolCall) string {
	if r.Name != "" {
		return r.Name
	}
	for i := range calls {
		if calls[i].ID == r.CallID {
			return calls[i].Name
		}
	}
	return r.CallID
}

// result writes a tool's result under the key that Google's documentation gives it.
func (w *writer) result(r *neutral.ToolResult, calls []neutral.ToolCall) {
	w.next()
	w.raw(`{"functionResponse":{"name":`)
	w.string(nameOf(r, calls))
	w.key("response")
	if r.IsError {
		w.raw(`{"error":`)
	} else {
		w.raw(`{"output":`)
	}
	var texts []string
	for i := range r.Parts {
		if r.Parts[i].Kind == neutral.TextPart {
			texts = append(texts, r.Parts[i].Text)
		}
	}
	w.string(strings.Join(texts, "\n\n"))
	w.raw("}}}")
}

func (w *writer) attachments(r *neutral.ToolResult, calls []neutral.ToolCall) {
	first := true
	for i := range r.Parts {
		if r.Parts[i].Kind == neutral.TextPart {
			continue
		}
		if first {
			w.plain("Attached to the result of " + nameOf(r, calls) + ":")
			first = false
		}
		w.part(&r.Parts[i])
	}
}

// plain writes a text as a part. An empty one is refused by Vertex AI.
func (w *writer) plain(s string) {
	if s == "" {
		return
	}
	w.next()
	w.raw(`{"text":`)
	w.string(s)
	w.raw("}")
	w.textEnd = len(w.dst)
}

func (w *writer) part(p *neutral.Part) {
	switch p.Kind {
	case neutral.TextPart, neutral.RefusalPart:
		w.plain(p.Text)
	case neutral.ImagePart, neutral.DocumentPart, neutral.AudioPart:
		w.media(&p.Media)
	default:
		w.fail(&unsayableError{"this kind of content"})
	}
}

// googleFiles is where files stand that were given to the Gemini API.
const googleFiles = "https://generativelanguage.googleapis.com/"

// media writes data, or a file that Google holds. Any other address would have to be
// fetched for the caller, which the gateway does not do (Z1).
func (w *writer) media(m *neutral.Media) {
	switch {
	case m.FileID != "":
		w.fail(&unsayableError{"a file that another provider holds"})
	case strings.HasPrefix(m.URL, "gs://"), strings.HasPrefix(m.URL, googleFiles):
		w.next()
		w.raw(`{"fileData":{`)
		if m.Type != "" {
			w.text("mimeType", m.Type)
		}
		w.text("fileUri", m.URL)
		w.raw("}}")
	case m.URL != "":
		w.fail(&unsayableError{"a picture or a document by its address"})
	default:
		w.next()
		w.raw(`{"inlineData":{`)
		w.text("mimeType", m.Type)
		// Base64 has nothing that JSON would escape, once a decoder has looked at it.
		w.raw(`,"data":"`)
		w.raw(m.Base64)
		w.raw(`"}}`)
	}
}

// anySignature stands for the signature of a call that another model made: Google's
// documented word for a history that comes from elsewhere. The third generation
// refuses a turn whose first call has none.
const anySignature = "skip_thought_signature_validator"

// modelTurn writes a turn of the model's and returns its calls. Thoughts are not sent
// back, only their signatures, each to the part that it stood on.
func (w *writer) modelTurn(parts []neutral.Part) (calls []neutral.ToolCall) {
	w.turn("model", func() {
		seal := ""
		signed := false
		for i := range parts {
			p := &parts[i]
			switch p.Kind {
			case neutral.ReasoningPart:
				if s := w.signature(p); s != "" && p.Opaque.ID == onCall {
					seal = s
				} else if s != "" {
					w.sign(s)
				}
			case neutral.ToolCallPart:
				if seal == "" && !signed && w.model.levels() {
					seal = anySignature
				}
				signed = signed || seal != ""
				w.call(&p.Call, seal)
				seal = ""
				calls = append(calls, p.Call)
			default:
				w.part(p)
			}
		}
	})
	return calls
}

// signature is a reasoning part's own one, if it was given by Google (K4).
func (w *writer) signature(p *neutral.Part) string {
	if p.Opaque.Issuer != neutral.Generate || w.withoutSeals {
		return ""
	}
	return p.Opaque.Signature
}

// sign puts a signature on the text before it, or on an empty text, which is how it
// comes in a stream.
func (w *writer) sign(signature string) {
	if w.textEnd == len(w.dst) {
		w.dst = w.dst[:len(w.dst)-1]
	} else {
		w.next()
		w.raw(`{"text":""`)
	}
	w.text("thoughtSignature", signature)
	w.raw("}")
}

// call writes a call that the model made. Its arguments are a JSON text to us and an
// object here.
func (w *writer) call(c *neutral.ToolCall, signature string) {
	w.next()
	w.raw(`{"functionCall":{"name":`)
	w.string(c.Name)
	w.key("args")
	if arguments := strings.TrimSpace(c.Arguments); arguments == "" {
		w.raw("{}")
	} else if _, ok := rawjson.Parse([]byte(arguments)); ok {
		w.raw(arguments)
	} else {
		// What the model once wrote stays in the conversation, be it no JSON.
		w.raw(`{"arguments":`)
		w.string(c.Arguments)
		w.raw("}")
	}
	w.raw("}")
	if signature != "" {
		w.text("thoughtSignature", signature)
	}
	w.raw("}")
}

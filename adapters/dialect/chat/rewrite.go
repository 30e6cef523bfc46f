package chat

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
)

// rewriter collects the edits that a caller is owed in a provider's bytes. All else
// stays as it came (P4).
type rewriter struct {
	// model is the name in quotes (N23).
	model []byte
	// keepUsage is false for a streaming caller who did not ask for usage (S8).
	keepUsage bool
	// member is where a choice has its content: delta or message.
	member  string
	choices choices

	doc   []byte
	edits []rawjson.Edit
	// usageOnly is set by an object with usage and without choices.
	usageOnly bool
}

func (r *rewriter) begin(doc []byte) {
	r.doc, r.edits, r.usageOnly = doc, r.edits[:0], false
}

// object goes over the members of a chunk or a whole reply, duplicates included.
func (r *rewriter) object(doc gjson.Result) {
	cut := rawjson.Remover{Doc: r.doc}
	usage, choices := false, 0
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "error":
			// No error, or the decoder had not let it pass. Even a null ends the stream of
			// openai-go, which tests that the member exists.
			r.edits = append(r.edits, cut.Cut(key, v))
			return true
		case "usage":
			usage = v.IsObject()
			if !r.keepUsage {
				r.edits = append(r.edits, cut.Cut(key, v))
				return true
			}
		case "model":
			r.replace(v, r.model)
		case "choices":
			v.ForEach(func(_, v gjson.Result) bool {
				choices++
				r.choice(v)
				return true
			})
		}
		cut.Stay(v)
		return true
	})
	r.usageOnly = usage && choices == 0
}

func (r *rewriter) replace(v gjson.Result, with []byte) {
	r.edits = append(r.edits, rawjson.Replace(v, with))
}

// choice puts tool indexes and the finish reason right. Members may stand in any
// order, and the reason depends on the calls, so it is looked at first and edited
// in its place.
func (r *rewriter) choice(v gjson.Result) {
	var index int64
	var delta gjson.Result
	ends := false
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "index":
			index, _ = rawjson.Integer(v)
		case r.member:
			delta = v
		case "finish_reason":
			ends = ends || v.Type == gjson.String
		}
		return true
	})
	c := r.choices.at(index)
	if c == nil {
		return
	}
	// Most chunks have not even the word in them.
	sees := strings.Contains(delta.Raw, "call") &&
		(delta.Get("tool_calls.0").Exists() || delta.Get("function_call").IsObject())
	c.sawTool = c.sawTool || sees
	if !sees && !ends {
		return // nothing to edit, as in most chunks
	}
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case r.member:
			if sees {
				r.toolCalls(c, v)
			}
		case "finish_reason":
			r.reason(c, v)
		}
		return true
	})
}

func (r *rewriter) reason(c *choice, v gjson.Result) {
	if v.Type != gjson.String {
		return
	}
	if v.Str == "" {
		r.replace(v, []byte("null"))
		return
	}
	stop, f := finish(v.Str, c.sawTool)
	if f != nil || (clientReasons[v.Str] && (v.Str == string(stop) || v.Str == "function_call")) {
		return
	}
	r.replace(v, rawjson.Quote(string(stop)))
}

func (r *rewriter) toolCalls(c *choice, delta gjson.Result) {
	delta.ForEach(func(key, list gjson.Result) bool {
		if key.Str != "tool_calls" {
			return true
		}
		list.ForEach(func(_, fragment gjson.Result) bool {
			if at, _, ok := c.calls.place(fragment); ok {
				r.index(fragment, at)
			}
			return true
		})
		return true
	})
}

// index writes a fragment's place. A whole reply's calls have none.
func (r *rewriter) index(fragment gjson.Result, at int) {
	found := false
	fragment.ForEach(func(key, v gjson.Result) bool {
		if key.Str == "index" {
			found = true
			if n, ok := rawjson.Integer(v); !ok || n != int64(at) {
				r.replace(v, strconv.AppendInt(nil, int64(at), 10))
			}
		}
		return true
	})
	if found || r.member != "delta" {
		return
	}
	with := strconv.AppendInt([]byte(`"index":`), int64(at), 10)
	if first := fragment.Get("@keys.0"); first.Exists() {
		with = append(with, ',')
	}
	open := fragment.Index + 1
	r.edits = append(r.edits, rawjson.Edit{Start: open, End: open, With: with})
}

package chat

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// unsayableError is a part of a request that this dialect has no word for. The
// request's features keep such a one from coming here.
type unsayableError struct{ what string }

func (e *unsayableError) Error() string { return "chat: cannot say " + e.what }

// writeNeutral says a request of another dialect. The same request always gives the
// same bytes, the prompt in the caller's order, so that a provider finds in its cache
// what it was sent the turn before (P12).
func writeNeutral(n *neutral.Request, t dialect.Target, q *quirks, size int) ([]byte, error) {
	w := writer{q: q, dst: make([]byte, 0, size+1024)}
	w.dst = append(w.dst, `{"model":`...)
	w.string(t.UpstreamModel)
	w.messages(n)
	w.tools(n)
	w.format(n.Format)
	w.reasoning(n.Reasoning)
	w.limits(n)
	if t.Stream {
		w.dst = append(w.dst, `,"stream":true`...)
		if !q.noStreamOptions {
			w.dst = append(w.dst, `,"stream_options":{"include_usage":true}`...)
		}
	}
	return append(w.dst, '}'), w.err
}

// writer appends a request.
type writer struct {
	q   *quirks
	dst []byte
	err error
}

func (w *writer) fail(what string) {
	if w.err == nil {
		w.err = &unsayableError{what}
	}
}

func (w *writer) raw(s string)    { w.dst = append(w.dst, s...) }
func (w *writer) string(s string) { w.dst = rawjson.AppendQuoted(w.dst, s) }

// key begins a member: the object that it stands in has one before it.
func (w *writer) key(name string) {
	w.dst = append(w.dst, ',', '"')
	w.raw(name)
	w.raw(`":`)
}

// limits are the bounds and knobs of the sampler.
func (w *writer) limits(n *neutral.Request) {
	if n.MaxOutputTokens > 0 {
		w.key(w.q.maxTokens)
		w.dst = strconv.AppendInt(w.dst, n.MaxOutputTokens, 10)
	}
	s := n.Sampling
	w.number("temperature", s.Temperature)
	w.number("top_p", s.TopP)
	if w.q.topK {
		w.number("top_k", s.TopK)
	}
	if w.q.seed != "" {
		w.number(w.q.seed, s.Seed)
	}
	if !w.q.noPenalties {
		w.number("frequency_penalty", s.FrequencyPenalty)
		w.number("presence_penalty", s.PresencePenalty)
	}
	if len(n.Stop) == 0 {
		return
	}
	w.key("stop")
	for i, stop := range n.Stop {
		w.raw(opening(i))
		w.string(stop)
	}
	w.raw("]")
}

func (w *writer) number(key string, n json.Number) {
	if n != "" {
		w.key(key)
		w.raw(string(n))
	}
}

// opening is what stands before the i-th element of a list.
func opening(i int) string {
	if i == 0 {
		return "["
	}
	return ","
}

func (w *writer) tools(n *neutral.Request) {
	if len(n.Tools) == 0 {
		// Without tools their options are refused.
		return
	}
	w.key("tools")
	for i := range n.Tools {
		w.raw(opening(i))
		w.tool(&n.Tools[i])
	}
	w.raw("]")
	if c := n.Choice; c.Mode != neutral.ChoiceDefault {
		w.key("tool_choice")
		switch c.Mode {
		case neutral.ChoiceNone:
			w.raw(`"none"`)
		case neutral.ChoiceAny:
			w.raw(`"required"`)
		case neutral.ChoiceNamed:
			w.raw(`{"type":"function","function":{"name":`)
			w.string(c.Name)
			w.raw("}}")
		default:
			w.raw(`"auto"`)
		}
	}
	if n.ParallelCalls != nil {
		w.key("parallel_tool_calls")
		w.dst = strconv.AppendBool(w.dst, *n.ParallelCalls)
	}
}

func (w *writer) tool(t *neutral.ToolDefinition) {
	w.raw(`{"type":"function","function":{"name":`)
	w.string(t.Name)
	if t.Description != "" {
		w.key("description")
		w.string(t.Description)
	}
	w.key("parameters")
	if t.Schema == nil {
		w.raw(`{"type":"object","properties":{}}`)
	} else {
		w.dst = append(w.dst, t.Schema...)
	}
	w.strict(t.Strict)
	w.raw("}")
	w.cache(t.Cache)
	w.raw("}")
}

func (w *writer) strict(strict *bool) {
	if strict != nil {
		w.key("strict")
		w.dst = strconv.AppendBool(w.dst, *strict)
	}
}

// cache marks a prefix where that is understood (P6).
func (w *writer) cache(c *neutral.CacheMarker) {
	if c == nil || !w.q.cacheControl {
		return
	}
	w.raw(`,"cache_control":{"type":"ephemeral"`)
	if c.TTL != "" {
		w.key("ttl")
		w.string(c.TTL)
	}
	w.raw("}")
}

// formatName is the name of a schema whose caller gave none: this dialect wants one.
const formatName = "answer"

func (w *writer) format(f *neutral.Format) {
	switch {
	case f == nil:
		return
	case f.Schema == nil:
		w.raw(`,"response_format":{"type":"json_object"}`)
		return
	}
	w.raw(`,"response_format":{"type":"json_schema","json_schema":{"name":`)
	name := f.Name
	if name == "" {
		name = formatName
	}
	w.string(name)
	if f.Description != "" {
		w.key("description")
		w.string(f.Description)
	}
	w.key("schema")
	w.dst = append(w.dst, f.Schema...)
	w.strict(f.Strict)
	w.raw("}}")
}

// The budgets up to which an effort is low or medium: what providers document for
// theirs.
const (
	lowBudget    = 2048
	mediumBudget = 8192
)

// effortOf is the effort that comes nearest to a budget.
func effortOf(r *neutral.ReasoningOptions) string {
	switch {
	case r.Effort != "" || r.BudgetTokens == 0:
		return r.Effort
	case r.BudgetTokens <= lowBudget:
		return "low"
	case r.BudgetTokens <= mediumBudget:
		return "medium"
	default:
		return "high"
	}
}

func (w *writer) reasoning(r *neutral.ReasoningOptions) {
	if r == nil {
		return
	}
	switch w.q.reasoning {
	case effortField:
		// Where reasoning is off by default there is nothing to turn off, and "none" is a
		// word that most do not know.
		if effort := effortOf(r); effort != "" && !r.Disabled {
			w.key("reasoning_effort")
			w.string(effort)
		}
	case reasoningObject:
		w.key("reasoning")
		switch {
		case r.Disabled:
			w.raw(`{"enabled":false}`)
		case r.Effort != "":
			w.raw(`{"effort":`)
			w.string(r.Effort)
			w.raw("}")
		case r.BudgetTokens > 0:
			w.raw(fmt.Sprintf(`{"max_tokens":%d}`, r.BudgetTokens))
		default:
			w.raw(`{"enabled":true}`)
		}
	case thinkingSwitch:
		w.key("thinking")
		if r.Disabled {
			w.raw(`{"type":"disabled"}`)
		} else {
			w.raw(`{"type":"enabled"}`)
		}
	case noReasoning:
	}
}

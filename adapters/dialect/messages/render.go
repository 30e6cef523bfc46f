package messages

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

const (
	// fallbackMaxTokens is the limit of a request where neither the caller nor the
	// plan has one: every model of this dialect takes it.
	fallbackMaxTokens = 4096
	// minBudget is the least that a model may be told to think.
	minBudget = 1024
)

// budgets are what an effort is in tokens, since older models know budgets alone.
// What a caller asks for as a budget is taken as it is.
var budgets = map[string]int64{
	"minimal": 1024, "low": 2048, "medium": 8192, "high": 24576, "xhigh": 32768, "max": 65536,
}

// errEmpty is a conversation of which nothing is left to send.
var errEmpty = errors.New("messages: no message has any content that this dialect carries")

// render writes a request of another dialect. The bytes follow from the request
// alone, so that a prefix that was cached once is found again (P12).
func render(in *neutral.Request, t dialect.Target) ([]byte, error) {
	maxTokens := in.MaxOutputTokens
	if maxTokens == 0 {
		maxTokens = t.MaxOutputTokens
	}
	if maxTokens == 0 {
		maxTokens = fallbackMaxTokens
	}
	turns := arrange(in.Messages, t.WithoutSeals)
	if len(turns) == 0 {
		return nil, errEmpty
	}
	w := writer{ids: newCallIDs()}
	w.dst = make([]byte, 0, sizeOf(in))
	w.raw(`{"model":`).quoted(t.UpstreamModel)
	w.raw(`,"max_tokens":`).integer(maxTokens)
	w.system(in.System)
	w.tools(in)
	w.raw(`,"messages":[`)
	for i, turn := range turns {
		w.comma(i)
		w.turn(turn)
	}
	w.raw(`]`)
	if w.err != nil {
		return nil, w.err
	}
	budget := thinkingBudget(in, turns, maxTokens)
	w.thinking(in.Reasoning, budget)
	w.options(in, budget > 0)
	if t.Stream {
		w.raw(`,"stream":true`)
	}
	w.raw(`}`)
	return w.dst, nil
}

// sizeOf guesses the size of the body, so that one image is not copied again for
// each growth of the buffer.
func sizeOf(in *neutral.Request) int {
	n := 1024
	for _, m := range in.Messages {
		for i := range m.Parts {
			n += partSize(&m.Parts[i])
		}
	}
	for _, t := range in.Tools {
		n += len(t.Schema) + len(t.Description) + 128
	}
	return n
}

func partSize(p *neutral.Part) int {
	n := 128 + len(p.Text) + len(p.Text)/16 + len(p.Media.Base64) + len(p.Call.Arguments) + len(p.Opaque.Signature)
	for i := range p.Result.Parts {
		n += partSize(&p.Result.Parts[i])
	}
	return n
}

// thinkingBudget is how many tokens the model may think, 0 for none. It must leave
// room within max_tokens, and this dialect has no thinking beside a forced call or
// in a turn that began without it and goes on after a tool.
func thinkingBudget(in *neutral.Request, turns []neutral.Message, maxTokens int64) int64 {
	r := in.Reasoning
	if r == nil || r.Disabled || in.Choice.Mode == neutral.ChoiceAny || in.Choice.Mode == neutral.ChoiceNamed || midTurn(turns) {
		return 0
	}
	budget := r.BudgetTokens
	if budget == 0 {
		budget = budgets[r.Effort]
	}
	if budget == 0 {
		return 0
	}
	budget = min(max(budget, minBudget), maxTokens/4*3)
	if budget < minBudget {
		return 0
	}
	return budget
}

// midTurn reports whether the last turn of the assistant calls tools and does not
// begin with thinking that this dialect can carry.
func midTurn(turns []neutral.Message) bool {
	for _, m := range slices.Backward(turns) {
		if m.Role != neutral.Assistant {
			continue
		}
		calls := slices.ContainsFunc(m.Parts, func(p neutral.Part) bool { return p.Kind == neutral.ToolCallPart })
		return calls && !isOwnReasoning(&m.Parts[0])
	}
	return false
}

func isOwnReasoning(p *neutral.Part) bool {
	return p.Kind == neutral.ReasoningPart && p.Opaque.Issuer == neutral.Messages &&
		(p.Opaque.Signature != "" || p.Opaque.Redacted != "")
}

func (w *writer) thinking(r *neutral.ReasoningOptions, budget int64) {
	switch {
	case r != nil && r.Disabled:
		w.raw(`,"thinking":{"type":"disabled"}`)
	case budget > 0:
		w.raw(`,"thinking":{"type":"enabled","budget_tokens":`).integer(budget).raw(`}`)
	}
}

// options writes what is left. Thinking goes with the sampler's own settings alone,
// and newer models take one of temperature and top_p, not both.
func (w *writer) options(in *neutral.Request, thinks bool) {
	s := in.Sampling
	if !thinks {
		switch {
		case s.Temperature != "":
			w.raw(`,"temperature":`).raw(atMostOne(string(s.Temperature)))
		case s.TopP != "":
			w.raw(`,"top_p":`).raw(string(s.TopP))
		}
		if s.TopK != "" {
			w.raw(`,"top_k":`).raw(string(s.TopK))
		}
	}
	n := 0
	for _, stop := range in.Stop {
		if strings.TrimSpace(stop) == "" {
			continue // refused here
		}
		if n == 0 {
			w.raw(`,"stop_sequences":[`)
		}
		w.comma(n).quoted(stop)
		n++
	}
	if n > 0 {
		w.raw(`]`)
	}
	if in.Format != nil && in.Format.Schema != nil {
		w.raw(`,"output_config":{"format":{"type":"json_schema","schema":`).raw(string(in.Format.Schema)).raw(`}}`)
	}
}

// atMostOne is a temperature on this dialect's scale, which ends at 1 where others
// end at 2.
func atMostOne(temperature string) string {
	if f, err := strconv.ParseFloat(temperature, 64); err == nil && f > 1 {
		return "1"
	}
	return temperature
}

func (w *writer) tools(in *neutral.Request) {
	if len(in.Tools) == 0 {
		return
	}
	w.raw(`,"tools":[`)
	for i := range in.Tools {
		tool := &in.Tools[i]
		w.comma(i).raw(`{"name":`).quoted(tool.Name)
		if tool.Description != "" {
			w.raw(`,"description":`).quoted(tool.Description)
		}
		schema := string(tool.Schema)
		if schema == "" {
			schema = `{"type":"object","properties":{}}`
		}
		w.raw(`,"input_schema":`).raw(schema)
		if tool.Strict != nil {
			w.raw(`,"strict":`).raw(strconv.FormatBool(*tool.Strict))
		}
		w.cache(tool.Cache).raw(`}`)
	}
	w.raw(`]`)
	w.toolChoice(in)
}

func (w *writer) toolChoice(in *neutral.Request) {
	oneAtATime := in.ParallelCalls != nil && !*in.ParallelCalls
	kind := map[neutral.ChoiceMode]string{
		neutral.ChoiceAuto: "auto", neutral.ChoiceNone: "none", neutral.ChoiceAny: "any", neutral.ChoiceNamed: "tool",
	}[in.Choice.Mode]
	if kind == "" && oneAtATime {
		kind = "auto"
	}
	if kind == "" {
		return
	}
	w.raw(`,"tool_choice":{"type":`).quoted(kind)
	if in.Choice.Mode == neutral.ChoiceNamed {
		w.raw(`,"name":`).quoted(in.Choice.Name)
	}
	if oneAtATime && kind != "none" {
		w.raw(`,"disable_parallel_tool_use":true`)
	}
	w.raw(`}`)
}

// writer appends JSON. Its methods return it, to be chained.
type writer struct {
	dst []byte
	ids *callIDs
	err error
}

func (w *writer) raw(s string) *writer {
	w.dst = append(w.dst, s...)
	return w
}

func (w *writer) quoted(s string) *writer {
	w.dst = rawjson.AppendQuoted(w.dst, s)
	return w
}

func (w *writer) integer(n int64) *writer {
	w.dst = strconv.AppendInt(w.dst, n, 10)
	return w
}

// comma separates the i-th element of a list from the one before.
func (w *writer) comma(i int) *writer {
	if i > 0 {
		w.dst = append(w.dst, ',')
	}
	return w
}

func (w *writer) cache(m *neutral.CacheMarker) *writer {
	if m == nil {
		return w
	}
	w.raw(`,"cache_control":{"type":"ephemeral"`)
	if m.TTL != "" {
		w.raw(`,"ttl":`).quoted(m.TTL)
	}
	return w.raw(`}`)
}

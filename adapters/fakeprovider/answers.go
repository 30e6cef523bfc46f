package fakeprovider

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// filler is what answers are made of after the facts.
var filler = spaced("the quick brown fox jumps over the lazy dog and then it sleeps under an old tree")

// cjkFiller has characters of two, three and four bytes, so that every kind
// of cut inside a character happens.
var cjkFiller = spaced("你好 世界 🙂 çava 日本語 👩‍💻 한국어")

var refusalWords = []string{"I'm", " sorry,", " I", " can't", " help", " with", " that."}

// spaced splits a text into words that keep the space before them.
func spaced(text string) []string {
	words := strings.Fields(text)
	for i := range words {
		words[i] = " " + words[i]
	}
	return words
}

// makeAnswer works out the answer to a request under a plan. It depends on
// nothing else but the call's number and time.
func makeAnswer(p *plan, in request, facts callFacts, unixSeconds int64) *answer {
	a := &answer{
		id:           "fake-" + strconv.FormatInt(facts.sequence, 10),
		created:      unixSeconds,
		model:        in.model,
		finish:       "stop",
		form:         p.answer.form,
		includeUsage: in.includeUsage,
	}
	a.usage.input = in.promptTokens
	if p.answer.inputs > 0 {
		a.usage.input = in.promptTokens * p.answer.inputs / 100
	}
	a.usage.cached = min(p.answer.cached, a.usage.input)
	a.usage.written = min(p.answer.written, a.usage.input-a.usage.cached)
	if p.answer.reasoning > 0 {
		a.reasoning = words(nil, p.answer.reasoning, filler)
	}
	switch calls := toolCallsWanted(p, in); {
	case p.answer.empty:
	case p.answer.refusal > 0:
		for i := range p.answer.refusal {
			a.refusal = append(a.refusal, refusalWords[i%len(refusalWords)])
		}
	case calls > 0:
		if p.answer.textFirst {
			a.text = words([]string{"let me look"}, 3, filler)
		}
		a.calls = makeCalls(p, in, facts, calls)
		a.finish = "tool_calls"
	default:
		a.text = makeText(p, in)
		if !p.answer.noStops {
			a.text, a.stoppedAt = untilStop(a.text, in.stops)
		}
	}
	limitTo(a, in.maxTokens)
	if p.answer.finish != "" {
		a.finish = p.answer.finish
	}
	if p.answer.noFinish {
		a.finish = ""
	}
	a.usage.reasoning = len(a.reasoning)
	a.usage.output = len(a.reasoning) + len(a.text) + len(a.refusal)
	for _, call := range a.calls {
		a.usage.output += len(call.arguments)
	}
	return a
}

// makeText is the text of an answer in the chunks it streams in: one chunk is
// one token.
func makeText(p *plan, in request) []string {
	said, marked := markedWords(in.lastText)
	switch {
	case marked:
		return said
	case p.answer.bigBytes > 0:
		return []string{strings.Repeat("x", p.answer.bigBytes)}
	case in.schema != nil && p.answer.offSchema:
		return pieces(offSchema)
	case in.schema != nil:
		return pieces(exampleOf(in.schema))
	case in.jsonObject:
		return pieces(`{"answer":"the quick brown fox","ok":true}`)
	case p.answer.cjk:
		return words(nil, p.answer.words, cjkFiller)
	default:
		facts := []string{
			"model=" + in.model,
			"messages=" + strconv.Itoa(in.messages),
			"images=" + strconv.Itoa(in.images),
			"tools=" + strconv.Itoa(len(in.tools)),
			"prompt_tokens=" + strconv.Itoa(in.promptTokens),
		}
		return words(facts, p.answer.words, filler)
	}
}

// offSchema is JSON of a schema that nobody asks for.
const offSchema = `{"unexpected":true}`

// untilStop cuts a text before the first of the stop sequences that is in it.
func untilStop(text, stops []string) (kept []string, at string) {
	whole, end := strings.Join(text, ""), -1
	for _, stop := range stops {
		if i := strings.Index(whole, stop); stop != "" && i >= 0 && (end < 0 || i < end) {
			end, at = i, stop
		}
	}
	if end < 0 {
		return text, ""
	}
	for _, piece := range text {
		piece = piece[:min(len(piece), end)]
		if piece == "" {
			break
		}
		kept = append(kept, piece)
		end -= len(piece)
	}
	return kept, at
}

// words returns n words, the given ones first and then filler; each has the
// space before it, except the first of the given ones.
func words(first []string, n int, from []string) []string {
	out := make([]string, n)
	for i := range out {
		switch {
		case i < len(first) && i > 0:
			out[i] = " " + first[i]
		case i < len(first):
			out[i] = first[i]
		default:
			out[i] = from[(i-len(first))%len(from)]
		}
	}
	return out
}

// pieceRunes is the length of the pieces that JSON streams in.
const pieceRunes = 8

// pieces cuts text between characters, in two at least if it can: a cut in
// the middle of a call's arguments needs a middle.
func pieces(text string) []string {
	runes := []rune(text)
	size := max(1, min(pieceRunes, len(runes)/2))
	var out []string
	for part := range slices.Chunk(runes, size) {
		out = append(out, string(part))
	}
	return out
}

// toolCallsWanted is how many tools an answer calls.
func toolCallsWanted(p *plan, in request) int {
	if p.answer.calls > 0 {
		return p.answer.calls
	}
	if len(in.tools) == 0 {
		return 0
	}
	switch in.toolChoice {
	case "none":
		return 0
	case "", "auto":
		_, _, marked := markedCall(in.lastUser, in.tools)
		if (marked || strings.Contains(in.lastUser, ToolMarker)) && !in.toolAnswered {
			return 1
		}
		return 0
	default:
		return 1
	}
}

// makeCalls calls the tool that tool_choice or a marker names, else tools in their order.
// Without tools, a plan that asks for calls gets an invented one.
func makeCalls(p *plan, in request, facts callFacts, n int) []toolCall {
	offered := in.tools
	for _, t := range in.tools {
		if t.name == in.toolChoice {
			offered = []tool{t}
		}
	}
	if len(offered) == 0 {
		offered = []tool{{name: "get_weather", parameters: []byte(`{"type":"object","properties":{"location":{"type":"string"}}}`)}}
	}
	marked, arguments, isMarked := markedCall(in.lastUser, offered)
	if isMarked {
		offered = []tool{marked}
	}
	calls := make([]toolCall, n)
	for i := range calls {
		t := offered[i%len(offered)]
		if !isMarked {
			arguments = argumentsFor(t.parameters)
		}
		if p.answer.offSchema {
			arguments = offSchema
		}
		calls[i] = toolCall{
			id:        fmt.Sprintf("call_fake_%d_%d", facts.sequence, i),
			name:      t.name,
			arguments: pieces(arguments),
		}
	}
	return calls
}

// limitTo cuts an answer at the caller's maximum of output tokens.
func limitTo(a *answer, maxTokens int) {
	if maxTokens <= 0 {
		return
	}
	left := maxTokens
	cut := func(list []string) []string {
		if len(list) > left {
			a.finish, a.stoppedAt = "length", ""
			list = list[:left]
		}
		left -= len(list)
		return list
	}
	a.reasoning, a.text, a.refusal = cut(a.reasoning), cut(a.text), cut(a.refusal)
	for i := range a.calls {
		a.calls[i].arguments = cut(a.calls[i].arguments)
	}
}

package fakeprovider

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// dialect spells plans in one provider's protocol. A new protocol is a new
// file with a new value of this interface, added to [dialects].
type dialect interface {
	// register adds the dialect's own paths. Paths that are model calls are
	// handed to s.serveCall.
	register(mux *http.ServeMux, s *Server)
	// parse reads what the answer depends on from a request.
	parse(r *http.Request, body []byte) (request, error)
	// failure spells a refusal: its status and body. Headers are the plan's.
	failure(f failure, call callFacts) (status int, body []byte)
	// whole spells an answer in one piece.
	whole(a *answer) []byte
	// events spells an answer as a stream, in order, terminator included.
	events(a *answer) []event
	// errorEvent spells a failure inside a stream that began with 200; bare:
	// as an error alone, not in an event of the usual shape.
	errorEvent(f failure, a *answer, bare bool) event
	// idle are bytes of a stream that mean nothing.
	idle() []byte
	// malformedEvent is an event whose payload is not what the protocol says.
	malformedEvent() event
	// streamType is the content type of a stream.
	streamType() string
	// frame appends one event as it stands on the wire. n counts events.
	frame(dst []byte, f framing, n int, e event) []byte
}

// dialects are the protocols a server speaks.
func dialects() []dialect {
	return []dialect{chat{}, embeddings{}, messages{}, responses{}, gemini{}, converse{}}
}

// failureTable holds a dialect's failures by kind and form. The empty form is
// the protocol's own wording; the others are what compatible providers and
// relays send for the same fact, which is why a status alone does not
// classify (W4). Kinds are the same in all dialects.
type failureTable map[string]map[string]wording

// wording is how one provider says one failure. In a body, $MODEL stands for
// the model called.
type wording struct {
	status int
	body   string
}

// failureTables are the tables of all dialects: the grammar accepts a form
// that any of them knows.
var failureTables = []failureTable{chatFailures, messagesFailures, geminiFailures, converseFailures}

func knownForm(kind, form string) bool {
	return slices.ContainsFunc(failureTables, func(t failureTable) bool {
		_, ok := t[kind][form]
		return ok
	})
}

func formNames(kind string) string {
	names := map[string]bool{}
	for _, table := range failureTables {
		for name := range table[kind] {
			names[name] = true
		}
	}
	delete(names, "")
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

func kindNames() string {
	names := map[string]bool{finishKind: true}
	for _, table := range failureTables {
		for name := range table {
			names[name] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

// request is what the answer depends on, whatever the protocol.
type request struct {
	model        string
	stream       bool
	includeUsage bool
	maxTokens    int // 0: not given
	stops        []string
	promptTokens int
	messages     int
	images       int
	tools        []tool
	toolChoice   string // "", "none", "auto", "required", or a tool's name
	schema       json.RawMessage
	jsonObject   bool
	lastUser     string // the text of the user's last message
	lastText     string // the text of the last message, a tool's result included
	toolAnswered bool   // the last message is a tool's result
}

// tool is one function the caller offers.
type tool struct {
	name       string
	parameters json.RawMessage
}

// callFacts identify a call in what is sent back.
type callFacts struct {
	sequence int64
	model    string
}

// event is one event of a stream before framing.
type event struct {
	name   string // SSE event name; empty: none
	data   []byte
	tokens int  // output tokens that the event delivers
	output bool // carries output: text, reasoning, refusal or a piece of a call
	last   bool // the protocol's terminator
}

// answer is a complete answer before a dialect spells it.
type answer struct {
	id        string
	created   int64 // Unix seconds
	model     string
	reasoning []string
	text      []string
	refusal   []string
	calls     []toolCall
	finish    string // Chat's words; empty: none is sent
	stoppedAt string // the caller's stop sequence that ended the text; empty: none did
	usage     usage
	form      answerForm
	// includeUsage says that the caller asked for usage in the stream.
	includeUsage bool
}

// toolCall is one call, its arguments cut into the pieces they stream in.
type toolCall struct {
	id, name  string
	arguments []string
}

func (c toolCall) whole() string { return strings.Join(c.arguments, "") }

// usage is what a provider would bill, in tokens. Output includes reasoning.
type usage struct {
	input, cached, written, output, reasoning int
}

// answerForm are the ways in which providers spell the same answer.
type answerForm struct {
	usagePlace  usagePlace
	usageValue  usageValue
	emptyTools  bool // "tool_calls": [] beside text
	mergedRole  bool // role and first content in one chunk
	wholeCalls  bool // a call arrives complete in one chunk
	noSentinel  bool // the stream lacks its terminator
	noRoleChunk bool
}

type usagePlace int

const (
	usageAsAsked usagePlace = iota // trailing chunk if the caller asked
	usageTrailing
	usageInLast
	usageBeforeLast
	usageEvery
	usageAbsent
)

type usageValue int

const (
	usageTrue usageValue = iota
	usageNull
	usageZero
	usageCachedOverPrompt
	usageReasoningOutside
)

// reported is the usage as the plan wants it told, which need not be true.
func (a *answer) reported() usage {
	u := a.usage
	switch a.form.usageValue {
	case usageZero:
		return usage{}
	case usageCachedOverPrompt:
		u.cached = u.input*2 + 1
	case usageTrue, usageNull, usageReasoningOutside:
	}
	return u
}

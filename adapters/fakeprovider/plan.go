package fakeprovider

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// plan is what one call gets, in words that no dialect owns. Plans are
// compiled once and shared by calls: they are never changed afterwards.
type plan struct {
	name string // as written
	head head
	// failure, when set, is sent instead of an answer (head is headAnswer).
	failure *failure
	// every is the pause between the comments of headTrickle.
	every time.Duration

	delay   time.Duration // before the first byte
	gap     time.Duration // between writes of a body
	split   int           // bytes a write; 0: one event a write, or all at once
	splitAt int           // cut the body in two writes here; 0: do not
	gzip    bool
	framing framing

	answer  answerPlan
	insert  *insertion
	ending  ending
	billAll bool // bill in full whatever was delivered
}

// head is what happens before a body.
type head int

const (
	headAnswer  head = iota // a status line, headers and a body
	headReset               // RST in place of a reply
	headClose               // FIN in place of a reply
	headSilence             // nothing, until the client leaves
	headOnly                // 200 and headers, then nothing
	headTrickle             // 200, headers, then comments for ever
	headHTML                // 200 with a web page
	headEmpty               // 200 with no body
)

// answerPlan shapes a good answer.
type answerPlan struct {
	words     int
	inputs    int // percent of the prompt's tokens that are counted; 0: all of them
	reasoning int
	cached    int
	written   int
	cjk       bool
	bigBytes  int // one chunk of so many bytes; 0: none
	empty     bool
	refusal   int  // words of a refusal, 0 for none
	calls     int  // tool calls; 0: as the request asks
	textFirst bool // text before the calls
	finish    string
	noFinish  bool
	noStops   bool // text goes on past the caller's stop sequences
	offSchema bool // structured output and arguments are of another schema
	form      answerForm
}

// failure is an error that the provider reports.
type failure struct {
	kind   string // a key of the dialect's failure table
	form   string // whose wording; empty: the dialect's own
	status int    // 0: the usual one
	header http.Header
	// dateAhead, above zero, is a Retry-After given as a date so far ahead of
	// the call.
	dateAhead time.Duration
	relay     bool // wrapped as a relay (OpenRouter) hands it on
	stall     bool // half of the body, then silence
}

// insertion is something foreign put into a stream.
type insertion struct {
	after   int      // output events before it; beforeAll: before everything
	failure *failure // nil: a malformed event
	bare    bool     // the failure as an event of its own shape
	goesOn  bool     // the rest of the stream follows
}

// finishKind is the failure that is told by a finish reason, not by an error
// alone.
const finishKind = "finish"

// beforeAll places an insertion before the first event of a stream.
const beforeAll = -1

// ending is how a body ends.
type ending struct {
	how   endHow
	after int // output events delivered before it
}

type endHow int

const (
	endComplete endHow = iota
	endEOF             // a proper end of the HTTP body, the rest of the stream missing
	endClose           // the body is delimited by the connection's end: a clean FIN
	endFIN             // FIN before the last chunk of a chunked body
	endChunk           // FIN inside a chunk that promised more
	endRST             // RST
	endStall           // nothing more until the client leaves
)

const (
	modelPrefix  = "fake-"
	defaultWords = 16
	// maxOutcomes bounds a sequence, maxParts an outcome: names come from callers.
	maxOutcomes = 1024
	maxParts    = 32
)

// parseSequence reads "500,500,ok" into one plan for each call.
func parseSequence(text string) ([]*plan, error) {
	names := strings.Split(text, ",")
	if len(names) > maxOutcomes {
		return nil, fmt.Errorf("more than %d outcomes in a sequence", maxOutcomes)
	}
	plans := make([]*plan, 0, len(names))
	for _, name := range names {
		p, err := parseOutcome(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// parseOutcome reads one outcome, parts joined by "+", later parts applied on
// top of earlier ones.
func parseOutcome(text string) (*plan, error) {
	parts := strings.Split(text, "+")
	if len(parts) > maxParts {
		return nil, fmt.Errorf("more than %d parts in an outcome", maxParts)
	}
	p := &plan{name: text, answer: answerPlan{words: defaultWords}}
	for _, part := range parts {
		name, rest, has := strings.Cut(part, ":")
		f, ok := faultsByName[name]
		if !ok {
			return nil, fmt.Errorf("unknown fault %q in %q", name, text)
		}
		var args arguments
		if has {
			args = strings.Split(rest, ":")
		}
		if err := f.apply(p, args); err != nil {
			return nil, fmt.Errorf("%s in %q: %w", name, text, err)
		}
	}
	return p, nil
}

package fakeprovider

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// fault is one word of the grammar. The table below is what the parser, the
// help text and the model list are made from.
type fault struct {
	name    string
	args    string // as the help shows them
	doc     string
	example string // what the help and the model list show
	apply   func(*plan, arguments) error
}

// section groups faults in the help text.
type section struct {
	title  string
	faults []fault
}

var faultsByName = func() map[string]fault {
	byName := map[string]fault{}
	for _, s := range sections() {
		for _, f := range s.faults {
			byName[f.name] = f
		}
	}
	return byName
}()

func sections() []section {
	return []section{
		{"Answers", answerFaults()},
		{"Refused before an answer", refusalFaults()},
		{"Broken before an answer", headFaults()},
		{"Broken inside an answer (K = output chunks delivered first)", streamFaults()},
		{"Usage", usageFaults()},
		{"Framing", framingFaults()},
		{"Pace", paceFaults()},
	}
}

// set makes an apply function of a change that takes no argument.
func set(change func(*plan)) func(*plan, arguments) error {
	return func(p *plan, args arguments) error {
		if len(args) > 0 {
			return fmt.Errorf("takes no argument")
		}
		change(p)
		return nil
	}
}

// counted makes an apply function of a change that takes one number.
func counted(otherwise int, change func(*plan, int)) func(*plan, arguments) error {
	return func(p *plan, args arguments) error {
		n, err := args.count(0, otherwise)
		if err == nil {
			change(p, n)
		}
		return err
	}
}

// fail makes an apply function of a refusal whose first argument chooses the
// wording among the dialect's forms.
func fail(kind string) func(*plan, arguments) error {
	return func(p *plan, args arguments) error {
		form := args.word(0, "")
		if !knownForm(kind, form) {
			return fmt.Errorf("no form %q; known: %s", form, formNames(kind))
		}
		p.failure = &failure{kind: kind, form: form}
		return nil
	}
}

func answerFaults() []fault {
	return []fault{
		{"ok", "", "a good answer; tools and structured output as the request asks", "ok", set(func(*plan) {})},
		{"words", "N", "answer with N words, which are N tokens and N chunks", "words:200", counted(defaultWords, func(p *plan, n int) { p.answer.words = n })},
		{"reasoning", "N", "N tokens of reasoning_content first", "reasoning:8", counted(8, func(p *plan, n int) { p.answer.reasoning = n })},
		{"cached", "N", "report N prompt tokens as read from a cache", "cached:100", counted(1, func(p *plan, n int) { p.answer.cached = n })},
		{"written", "N", "report N prompt tokens as written to a cache", "written:100", counted(1, func(p *plan, n int) { p.answer.written = n })},
		{"cjk", "", "text with three-byte and four-byte characters", "cjk", set(func(p *plan) { p.answer.cjk = true })},
		{"big", "SIZE", "one chunk of SIZE bytes (64k, 1m, 32m)", "big:64k", applyBig},
		{"tool", "", "call the first tool of the request", "tool", set(func(p *plan) { p.answer.calls = 1 })},
		{"tools", "N", "N parallel tool calls", "tools:2", counted(2, func(p *plan, n int) { p.answer.calls = n })},
		{"text-tool", "", "text, then a tool call", "text-tool", set(func(p *plan) { p.answer.calls, p.answer.textFirst = max(p.answer.calls, 1), true })},
		{"whole-call", "", "a tool call complete in one chunk", "tool+whole-call", set(func(p *plan) { p.answer.form.wholeCalls = true })},
		{"empty-tools", "", "tool_calls: [] beside the text", "empty-tools", set(func(p *plan) { p.answer.form.emptyTools = true })},
		{"merged-role", "", "role and first content in one chunk", "merged-role", set(func(p *plan) { p.answer.form.mergedRole = true })},
		{"no-role", "", "no chunk carries the role", "no-role", set(func(p *plan) { p.answer.form.noRoleChunk = true })},
		{"refusal", "[N]", "the model refuses, in N words", "refusal:300", counted(len(refusalWords), func(p *plan, n int) { p.answer.refusal = max(n, 1) })},
		{"empty", "", "a completion without any output", "empty", set(func(p *plan) { p.answer.empty = true })},
		{"off-schema", "", "structured output and tool arguments that are not what their schema says", "tool+off-schema", set(func(p *plan) { p.answer.offSchema = true })},
		{"no-stop", "", "the text goes on past the stop sequences of the request", "no-stop", set(func(p *plan) { p.answer.noStops = true })},
		{"finish", "REASON", "end with this finish_reason (error, length, content_filter, anything)", "finish:error", applyFinish},
	}
}

func refusalFaults() []fault {
	return []fault{
		{"429", "[AFTER]", "throttled; AFTER: none, SECONDS, date:SECONDS, ms:MILLISECONDS, azure-ms:MILLISECONDS, huge, bad (no number), reset:DURATION (OpenAI's x-ratelimit-reset-*), tpm (insufficient_quota that is a throttle), retry-info (a quota failure with Google's RetryInfo)", "429:2", applyThrottle},
		{"500", "", "internal error", "500,ok", fail("server_error")},
		{"502", "", "bad gateway", "502", fail("bad_gateway")},
		{"503", "", "unavailable", "503", fail("unavailable")},
		{"504", "", "gateway timeout", "504", fail("gateway_timeout")},
		{"529", "", "overloaded", "529", fail("overloaded")},
		{"401", "", "the key is not known", "401", fail("auth")},
		{"403", "", "the key may not use this", "403", fail("forbidden")},
		{"404", "", "no such model", "404", fail("model_missing")},
		{"408", "", "the provider's own time-out", "408", fail("timeout")},
		{"400", "[FORM]", "the request is malformed; forms: " + formNames("invalid"), "400", fail("invalid")},
		{"413", "", "the request is too large", "413", fail("too_large")},
		{"context", "[FORM]", "the prompt is too long; forms: " + formNames("context"), "context", fail("context")},
		{"policy", "[FORM]", "refused by a content policy; forms: " + formNames("policy"), "policy", fail("policy")},
		{"funding", "[FORM]", "the account has no money; forms: " + formNames("funding"), "funding:deepseek", fail("funding")},
		{"status", "CODE", "any status with a plain error body", "status:418", applyStatus},
		{"retry-after", "AFTER", "add the header to any refusal, arguments as for 429", "503+retry-after:5", applyRetryAfter},
		{"relay", "", "wrap the refusal as a relay (OpenRouter) hands it on", "funding:anthropic+relay", applyRelay},
		{"stall-body", "", "half of the refusal's body, then silence", "500+stall-body", applyStallBody},
	}
}

func headFaults() []fault {
	before := func(h head) func(*plan, arguments) error { return set(func(p *plan) { p.head = h }) }
	return []fault{
		{"reset", "", "RST in place of a reply", "reset", before(headReset)},
		{"close", "", "FIN in place of a reply", "close", before(headClose)},
		{"silence", "", "accept, read, say nothing", "silence", before(headSilence)},
		{"headers", "", "200 and headers, then nothing", "headers", before(headOnly)},
		{"trickle", "[EVERY]", "200, then comments only, one EVERY (1s)", "trickle:20ms", applyTrickle},
		{"html", "", "200 with a web page", "html", before(headHTML)},
		{"empty-body", "", "200 with no body at all", "empty-body", before(headEmpty)},
		{"redirect", "", "302 to another address", "redirect", set(func(p *plan) {
			p.failure = &failure{kind: "redirect", header: http.Header{"Location": {"/v1/elsewhere"}}}
		})},
	}
}

func streamFaults() []fault {
	return []fault{
		{"cut", "K[:HOW]", "stop after K; HOW: eof (proper end of the body), close (body delimited by FIN), fin (no last chunk, the default), chunk (inside a chunk), rst", "cut:3:rst", applyCut},
		{"tool-cut", "[HOW]", "a tool call cut in the middle of its arguments", "tool-cut", applyToolCut},
		{"stall", "K", "silence after K", "stall:3", counted(3, func(p *plan, n int) { p.ending = ending{endStall, n} })},
		{"malformed", "K", "after K an event that is not JSON, then the rest", "malformed:2", counted(2, func(p *plan, n int) { p.insert = &insertion{after: n, goesOn: true} })},
		{"error", "K|first[:KIND[:FORM]]", "after K an error event with choices: []; first: before everything; KIND finish: a choice that ends with error", "error:first:overloaded", applyErrorEvent},
		{"bare-error", "K|first[:KIND[:FORM]]", "the same as an event named error whose data is the error alone", "bare-error:2", func(p *plan, args arguments) error {
			err := applyErrorEvent(p, args)
			if err == nil {
				p.insert.bare = true
			}
			return err
		}},
		{"no-done", "", "no [DONE] after the finish chunk", "no-done", set(func(p *plan) { p.answer.form.noSentinel = true })},
		{"no-finish", "", "no finish_reason; add no-done for a stream that just ends", "no-finish", set(func(p *plan) { p.answer.noFinish = true })},
		{"billed", "", "bill in full in the ledger, whatever was delivered", "silence+billed", set(func(p *plan) { p.billAll = true })},
	}
}

func usageFaults() []fault {
	return []fault{
		{"usage", "MODE", "where it is: trailing, last, before-last, every, absent; what it says: null, zero, cached-over-prompt, reasoning-outside", "usage:absent", applyUsage},
		{"input", "PERCENT", "count the prompt as so many percent of its tokens, as another tokenizer would", "input:120", counted(100, func(p *plan, n int) { p.answer.inputs = n })},
	}
}

func framingFaults() []fault {
	frame := func(change func(*framing)) func(*plan, arguments) error {
		return set(func(p *plan) { change(&p.framing) })
	}
	return []fault{
		{"crlf", "", "lines end with CRLF", "crlf", frame(func(f *framing) { f.ends = endsCRLF })},
		{"cr", "", "lines end with a bare CR", "cr", frame(func(f *framing) { f.ends = endsCR })},
		{"mixed", "", "LF, CRLF and CR in one stream", "mixed", frame(func(f *framing) { f.ends = endsMixed })},
		{"no-space", "", "data: without the space", "no-space", frame(func(f *framing) { f.noSpace = true })},
		{"multi-line", "", "data spread over several data: lines", "multi-line", frame(func(f *framing) { f.multiLine = true })},
		{"comments", "", "comments before, between and inside events", "comments", frame(func(f *framing) { f.comments = true })},
		{"fields", "", "event:, id: and retry: fields beside data", "fields", frame(func(f *framing) { f.fields = true })},
		{"bom", "", "a byte order mark first", "bom", frame(func(f *framing) { f.bom = true })},
		{"unended", "", "no blank line after the last event", "unended", frame(func(f *framing) { f.unended = true })},
		{"split", "N", "N bytes a write, wherever that cuts", "cjk+split:1", counted(1, func(p *plan, n int) { p.split = max(n, 1) })},
		{"split-at", "N", "two writes, cut at byte N", "cjk+split-at:300", counted(1, func(p *plan, n int) { p.splitAt = n })},
		{"gzip", "", "gzip the body, asked or not", "gzip", set(func(p *plan) { p.gzip = true })},
	}
}

func paceFaults() []fault {
	return []fault{
		{"delay", "D", "wait before the first byte", "delay:20ms", func(p *plan, args arguments) (err error) {
			p.delay, err = args.duration(0, 20*time.Millisecond)
			return err
		}},
		{"gap", "D", "wait between chunks", "gap:10ms", func(p *plan, args arguments) (err error) {
			p.gap, err = args.duration(0, 10*time.Millisecond)
			return err
		}},
		{"drip", "N:D", "N bytes, wait D, and again", "drip:16:5ms", func(p *plan, args arguments) (err error) {
			if p.split, err = args.count(0, 16); err != nil {
				return err
			}
			p.split = max(p.split, 1)
			p.gap, err = args.duration(1, 5*time.Millisecond)
			return err
		}},
	}
}

func applyBig(p *plan, args arguments) (err error) {
	p.answer.bigBytes, err = args.size(0, 64<<10)
	return err
}

func applyFinish(p *plan, args arguments) error {
	if p.answer.finish = args.word(0, ""); p.answer.finish == "" {
		return fmt.Errorf("needs a reason")
	}
	return nil
}

func applyStatus(p *plan, args arguments) error {
	code, err := args.count(0, 0)
	if err != nil {
		return err
	}
	if code < 400 || code > 599 {
		return fmt.Errorf("%d is not the status of an error", code)
	}
	p.failure = &failure{kind: "plain", status: code}
	return nil
}

func applyThrottle(p *plan, args arguments) error {
	p.failure = &failure{kind: "throttled"}
	if form := args.word(0, ""); form != "" && knownForm("throttled", form) {
		p.failure.form = form
		return nil
	}
	if len(args) == 0 {
		return nil
	}
	return applyRetryAfter(p, args)
}

// hugeRetryAfter is a wait that no caller's deadline allows.
const hugeRetryAfter = 24 * time.Hour

func applyRetryAfter(p *plan, args arguments) error {
	if p.failure == nil {
		return fmt.Errorf("follows a refusal")
	}
	header := http.Header{}
	switch form := args.word(0, ""); form {
	case "none", "":
	case "huge":
		header.Set("Retry-After", strconv.Itoa(int(hugeRetryAfter/time.Second)))
	case "date":
		seconds, err := args.count(1, 2)
		if err != nil {
			return err
		}
		p.failure.dateAhead = time.Duration(seconds) * time.Second
	case "ms", "azure-ms":
		n, err := args.count(1, 1500)
		if err != nil {
			return err
		}
		header.Set(map[string]string{"ms": "Retry-After-Ms", "azure-ms": "X-Ms-Retry-After-Ms"}[form], strconv.Itoa(n))
	case "bad":
		header.Set("Retry-After", "soon")
	case "reset":
		d := args.word(1, "1s")
		if _, err := time.ParseDuration(d); err != nil {
			return err
		}
		header.Set("X-Ratelimit-Limit-Requests", "60")
		header.Set("X-Ratelimit-Remaining-Requests", "0")
		header.Set("X-Ratelimit-Reset-Requests", d)
		header.Set("X-Ratelimit-Limit-Tokens", "150000")
		header.Set("X-Ratelimit-Remaining-Tokens", "0")
		header.Set("X-Ratelimit-Reset-Tokens", d)
	default:
		if _, err := args.count(0, 0); err != nil {
			return err
		}
		header.Set("Retry-After", form)
	}
	p.failure.header = header
	return nil
}

func applyRelay(p *plan, _ arguments) error {
	if p.failure == nil {
		return fmt.Errorf("follows a refusal")
	}
	p.failure.relay = true
	return nil
}

func applyStallBody(p *plan, _ arguments) error {
	if p.failure == nil {
		return fmt.Errorf("follows a refusal")
	}
	p.failure.stall = true
	return nil
}

func applyTrickle(p *plan, args arguments) (err error) {
	p.head = headTrickle
	p.every, err = args.duration(0, time.Second)
	if err == nil && p.every <= 0 {
		err = fmt.Errorf("the pause must be positive")
	}
	return err
}

var cutWords = map[string]endHow{"eof": endEOF, "close": endClose, "fin": endFIN, "chunk": endChunk, "rst": endRST}

func applyCut(p *plan, args arguments) error {
	after, err := args.count(0, 3)
	if err != nil {
		return err
	}
	how, err := args.oneOf(1, "fin", "eof", "close", "fin", "chunk", "rst")
	p.ending = ending{cutWords[how], after}
	return err
}

// toolCutAfter leaves a call's head and one piece of its arguments.
const toolCutAfter = 2

func applyToolCut(p *plan, args arguments) error {
	p.answer.calls = max(p.answer.calls, 1)
	how, err := args.oneOf(0, "fin", "eof", "close", "fin", "chunk", "rst")
	p.ending = ending{cutWords[how], toolCutAfter}
	return err
}

func applyErrorEvent(p *plan, args arguments) error {
	after := beforeAll
	if args.word(0, "first") != "first" {
		var err error
		if after, err = args.count(0, 0); err != nil {
			return err
		}
	}
	kind, form := args.word(1, "server_error"), args.word(2, "")
	if kind == finishKind {
		p.insert = &insertion{after: after, failure: &failure{kind: finishKind}}
		return nil
	}
	if !knownForm(kind, form) {
		return fmt.Errorf("no error %q in form %q; known: %s", kind, form, kindNames())
	}
	p.insert = &insertion{after: after, failure: &failure{kind: kind, form: form}}
	return nil
}

func applyUsage(p *plan, args arguments) error {
	places := map[string]usagePlace{"trailing": usageTrailing, "last": usageInLast, "before-last": usageBeforeLast, "every": usageEvery, "absent": usageAbsent}
	values := map[string]usageValue{"null": usageNull, "zero": usageZero, "cached-over-prompt": usageCachedOverPrompt, "reasoning-outside": usageReasoningOutside}
	mode := args.word(0, "")
	if place, ok := places[mode]; ok {
		p.answer.form.usagePlace = place
		return nil
	}
	if value, ok := values[mode]; ok {
		p.answer.form.usageValue = value
		return nil
	}
	return fmt.Errorf("unknown mode %q", mode)
}

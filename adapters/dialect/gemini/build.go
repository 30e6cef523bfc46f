package gemini

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// foreignError is a request in a dialect that nobody translates.
type foreignError struct{ from neutral.Dialect }

func (e *foreignError) Error() string {
	return fmt.Sprintf("gemini: cannot say a request in dialect %q", string(e.from))
}

// unsayableError is a part of a request that this dialect has no word for. The
// request's features keep such a one from coming here.
type unsayableError struct{ what string }

func (e *unsayableError) Error() string { return "gemini: cannot say " + e.what }

// Build says the caller's request anew. A schema that cannot be written out, because
// it refers to itself, is an *dialect.InvalidError that names the tool.
//
// The header has an API key in it; OAuth is added by Authorize.
func (o Outbound) Build(req *dialect.Request, t dialect.Target) (*dialect.Upstream, error) {
	at, err := endpointOf(t.BaseURL)
	if err != nil {
		return nil, err
	}
	if req.Neutral == nil {
		return nil, &foreignError{req.Dialect}
	}
	n, err := req.Neutral()
	if err != nil {
		return nil, err
	}
	body, err := write(n, t, len(req.Raw))
	if err != nil {
		return nil, err
	}
	return &dialect.Upstream{
		Method: http.MethodPost,
		URL:    at.url(t.UpstreamModel, projectOf(t.Secret), t.Stream),
		Header: header(t),
		Body:   body,
	}, nil
}

// header is all that goes upstream: nothing of the caller's (Z4). Google takes no
// idempotency keys.
func header(t dialect.Target) http.Header {
	h := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json"},
		"User-Agent":   {userAgent},
		// A compressed stream is held back until its block is full.
		"Accept-Encoding": {"identity"},
	}
	if t.Stream {
		h.Set("Accept", "text/event-stream")
	}
	if t.Secret != "" && !isCredentials(t.Secret) {
		h.Set("X-Goog-Api-Key", t.Secret)
	}
	return h
}

// write says a request. The same request always gives the same bytes, the prompt in
// the caller's order, so that a provider finds in its cache what it was sent the turn
// before (P12).
func write(n *neutral.Request, t dialect.Target, size int) ([]byte, error) {
	w := writer{dst: make([]byte, 0, size+size/8+1024), model: modelOf(t.UpstreamModel), withoutSeals: t.WithoutSeals}
	w.raw("{")
	w.contents(n)
	w.tools(n)
	w.config(n)
	w.raw("}")
	return w.dst, w.err
}

// writer appends a request.
type writer struct {
	dst          []byte
	model        model
	withoutSeals bool
	// textEnd is where the last part that is text ends, for a signature that belongs on
	// it.
	textEnd int
	err     error
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) raw(s string)    { w.dst = append(w.dst, s...) }
func (w *writer) string(s string) { w.dst = rawjson.AppendQuoted(w.dst, s) }

// next puts a comma behind what stands before, unless an object or a list has just
// been opened.
func (w *writer) next() {
	if c := w.dst[len(w.dst)-1]; c != '{' && c != '[' {
		w.raw(",")
	}
}

// key begins a member.
func (w *writer) key(name string) {
	w.next()
	w.dst = append(w.dst, '"')
	w.raw(name)
	w.raw(`":`)
}

func (w *writer) text(key, s string) {
	w.key(key)
	w.string(s)
}

func (w *writer) number(key string, n json.Number) {
	if n != "" {
		w.key(key)
		w.raw(string(n))
	}
}

func (w *writer) int(key string, n int64) {
	w.key(key)
	w.dst = strconv.AppendInt(w.dst, n, 10)
}

func (w *writer) tools(n *neutral.Request) {
	if len(n.Tools) == 0 {
		return
	}
	w.raw(`,"tools":[{"functionDeclarations":[`)
	for i := range n.Tools {
		t := &n.Tools[i]
		w.next()
		w.raw("{")
		w.text("name", t.Name)
		if t.Description != "" {
			w.text("description", t.Description)
		}
		// A function without parameters is declared without a schema: an object without
		// properties is refused.
		if schema := w.schema(t.Schema, "tools["+strconv.Itoa(i)+"]", false); schema != nil {
			w.key("parameters")
			w.dst = append(w.dst, schema...)
		}
		w.raw("}")
	}
	w.raw("]}]")
	w.choice(n.Choice)
}

func (w *writer) choice(c neutral.ToolChoice) {
	if c.Mode == neutral.ChoiceDefault {
		return
	}
	w.raw(`,"toolConfig":{"functionCallingConfig":{"mode":`)
	switch c.Mode {
	case neutral.ChoiceNone:
		w.raw(`"NONE"`)
	case neutral.ChoiceAny:
		w.raw(`"ANY"`)
	case neutral.ChoiceNamed:
		w.raw(`"ANY","allowedFunctionNames":[`)
		w.string(c.Name)
		w.raw("]")
	default:
		w.raw(`"AUTO"`)
	}
	w.raw("}}")
}

// config is the limits, the knobs of the sampler, the form of the answer and how much
// to think.
func (w *writer) config(n *neutral.Request) {
	begin := len(w.dst)
	w.raw(`,"generationConfig":{`)
	empty := len(w.dst)
	if n.MaxOutputTokens > 0 {
		w.int("maxOutputTokens", n.MaxOutputTokens)
	}
	s := n.Sampling
	w.number("temperature", s.Temperature)
	w.number("topP", s.TopP)
	w.number("topK", s.TopK)
	w.number("seed", s.Seed)
	w.number("frequencyPenalty", s.FrequencyPenalty)
	w.number("presencePenalty", s.PresencePenalty)
	if len(n.Stop) > 0 {
		w.key("stopSequences")
		w.raw("[")
		for _, stop := range n.Stop {
			w.next()
			w.string(stop)
		}
		w.raw("]")
	}
	w.format(n.Format)
	w.thinking(n.Reasoning)
	if len(w.dst) == empty {
		w.dst = w.dst[:begin]
		return
	}
	w.raw("}")
}

func (w *writer) format(f *neutral.Format) {
	if f == nil {
		return
	}
	w.text("responseMimeType", "application/json")
	if schema := w.schema(f.Schema, "response_format", true); schema != nil {
		w.key("responseSchema")
		w.dst = append(w.dst, schema...)
	}
}

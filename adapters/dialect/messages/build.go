package messages

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

const (
	// userAgent is how we name ourselves upstream.
	userAgent = "sluice"
	// defaultVersion is the one that every official client sends.
	defaultVersion = "2023-06-01"
	// maxBetaFlags and maxFlagBytes bound a header of the caller that goes on.
	maxBetaFlags = 64
	maxFlagBytes = 128
)

var (
	// errBaseURL is a base URL that is no http(s) URL.
	errBaseURL = errors.New("messages: base URL is not an absolute http or https URL")
	// errNotMessages is a body, a chunk or an answer that is no JSON object. A decoder
	// lets none pass.
	errNotMessages = errors.New("messages: not a JSON object")
)

// Build makes the request for one target. A caller's own bytes of this dialect stay
// as they are, key order included, but for the model, the stream switch, and
// thinking that this provider never signed (K4): a prompt's bytes are the same from
// turn to turn (P12).
func (Outbound) Build(req *dialect.Request, t dialect.Target) (*dialect.Upstream, error) {
	base, err := url.Parse(t.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") {
		return nil, errBaseURL
	}
	body, err := buildBody(req, t)
	if err != nil {
		return nil, err
	}
	return &dialect.Upstream{
		Method: http.MethodPost,
		URL:    base.JoinPath("v1", "messages").String(),
		Header: header(req, t),
		Body:   body,
	}, nil
}

func buildBody(req *dialect.Request, t dialect.Target) ([]byte, error) {
	if req.Dialect == neutral.Messages {
		return editBody(req.Raw, t)
	}
	in, err := req.Neutral()
	if err != nil {
		return nil, err
	}
	return render(in, t)
}

// header is all that goes upstream, by allow list (Z4). Version and beta flags are
// the caller's, byte for byte, where the caller speaks this dialect.
func header(req *dialect.Request, t dialect.Target) http.Header {
	h := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json"},
		"User-Agent":   {userAgent},
		// A compressed stream is held back until its block is full.
		"Accept-Encoding":   {"identity"},
		"Anthropic-Version": {defaultVersion},
	}
	if t.Stream {
		h.Set("Accept", "text/event-stream")
	}
	if t.Secret != "" {
		h.Set("X-Api-Key", t.Secret)
	}
	if t.IdempotencyKey != "" {
		h.Set("Idempotency-Key", t.IdempotencyKey)
	}
	if req.Dialect != neutral.Messages {
		return h
	}
	if isFlag(req.Flags.AnthropicVersion) {
		h.Set("Anthropic-Version", req.Flags.AnthropicVersion)
	}
	if flags := betaFlags(req.Flags.AnthropicBeta, t.BetaFlags); len(flags) > 0 {
		h.Set("Anthropic-Beta", strings.Join(flags, ","))
	}
	return h
}

// betaFlags are the flags that the target may be sent, in the caller's order.
func betaFlags(asked, allowed []string) []string {
	var flags []string
	for _, flag := range asked {
		if isFlag(flag) && (allowed == nil || slices.Contains(allowed, flag)) && len(flags) < maxBetaFlags {
			flags = append(flags, flag)
		}
	}
	return flags
}

// isFlag keeps anything out of a header that is no plain word.
func isFlag(s string) bool {
	if s == "" || len(s) > maxFlagBytes {
		return false
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || c == ',' {
			return false
		}
	}
	return true
}

// editBody cuts the changes that a target needs into a caller's own bytes.
func editBody(raw []byte, t dialect.Target) ([]byte, error) {
	doc, ok := rawjson.Parse(raw)
	if !ok {
		return nil, errNotMessages
	}
	unreadable := isForeignThinking
	if t.WithoutSeals {
		unreadable = isThinking
	}
	b := builder{raw: raw, unreadable: unreadable}
	b.unthink = thinkingEnabled(doc) && b.losesThinking(doc)
	cut := rawjson.Remover{Doc: raw}
	stream := false
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "model":
			b.edit(rawjson.Replace(v, rawjson.Quote(t.UpstreamModel)))
		case "stream":
			stream = true
			b.setStream(v, t.Stream)
		case "messages":
			b.messages(v)
		case "thinking":
			if b.unthink {
				b.edit(cut.Cut(key, v))
				return true
			}
		}
		cut.Stay(v)
		return true
	})
	if t.Stream && !stream {
		b.edit(rawjson.Insert(raw, doc, []byte(`"stream":true`)))
	}
	return rawjson.Splice(make([]byte, 0, len(raw)+len(t.UpstreamModel)+64), raw, b.edits), nil
}

type builder struct {
	raw   []byte
	edits []rawjson.Edit
	// unreadable picks the blocks that have to go.
	unreadable func(block gjson.Result) bool
	// unthink says that thinking has to be switched off for this request.
	unthink bool
}

func (b *builder) edit(e rawjson.Edit) { b.edits = append(b.edits, e) }

func (b *builder) setStream(v gjson.Result, stream bool) {
	switch {
	case stream && v.Type != gjson.True:
		b.edit(rawjson.Replace(v, []byte("true")))
	case !stream && v.Type == gjson.True:
		b.edit(rawjson.Replace(v, []byte("false")))
	}
}

// messages takes thinking away that the provider cannot read: it came from another
// dialect's provider in an earlier turn and has no signature of Anthropic's, or this
// provider has rejected it, and either would have the whole request refused. A message of nothing else goes with it; neighbours of one role are
// allowed.
func (b *builder) messages(list gjson.Result) {
	cut := rawjson.Remover{Doc: b.raw}
	list.ForEach(func(_, m gjson.Result) bool {
		content := rawjson.Member(m, "content")
		foreign, others := b.count(content)
		if foreign > 0 && others == 0 {
			b.edit(cut.Cut(m, m))
			return true
		}
		if foreign > 0 {
			b.thinking(content)
		}
		cut.Stay(m)
		return true
	})
}

func (b *builder) thinking(content gjson.Result) {
	cut := rawjson.Remover{Doc: b.raw}
	content.ForEach(func(_, block gjson.Result) bool {
		if b.unreadable(block) {
			b.edit(cut.Cut(block, block))
		} else {
			cut.Stay(block)
		}
		return true
	})
}

// count counts the blocks of a content that have to go, and the others.
func (b *builder) count(content gjson.Result) (foreign, others int) {
	if !content.IsArray() {
		return 0, 1
	}
	content.ForEach(func(_, block gjson.Result) bool {
		if b.unreadable(block) {
			foreign++
		} else {
			others++
		}
		return true
	})
	return foreign, others
}

func isForeignThinking(block gjson.Result) bool {
	return block.Get("type").Str == blockThinking && !usable(block.Get("signature").Str)
}

func isThinking(block gjson.Result) bool {
	kind := block.Get("type").Str
	return kind == blockThinking || kind == blockRedacted
}

// thinkingEnabled reports a fixed budget of thinking. With one, a turn that goes on
// after a tool call must begin with thinking; with adaptive thinking it need not.
func thinkingEnabled(doc gjson.Result) bool { return doc.Get("thinking.type").Str == "enabled" }

// losesThinking reports whether the last turn of the assistant calls tools and is
// left without the thinking that it began with.
func (b *builder) losesThinking(doc gjson.Result) bool {
	loses := false
	doc.Get("messages").ForEach(func(_, m gjson.Result) bool {
		if m.Get("role").Str != "assistant" {
			return true
		}
		foreign, _ := b.count(m.Get("content"))
		kept, calls := false, false
		m.Get("content").ForEach(func(_, block gjson.Result) bool {
			kept = kept || (isThinking(block) && !b.unreadable(block))
			calls = calls || block.Get("type").Str == blockToolUse
			return true
		})
		loses = foreign > 0 && calls && !kept
		return true
	})
	return loses
}

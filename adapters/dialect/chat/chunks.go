package chat

import (
	"strconv"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// chunkWriter says the events of another dialect as chunks. Usage waits for the end,
// where this dialect has it; nothing else waits.
type chunkWriter struct {
	// head is a chunk up to its choices.
	head []byte
	id   string

	began    bool
	sawTool  bool
	refused  bool
	reported usage.Usage
}

func newChunkWriter(meta dialect.Meta) *chunkWriter {
	w := &chunkWriter{id: meta.RequestID}
	w.head = append(w.head, `data: `...)
	w.head = appendHead(w.head, "chat.completion.chunk", meta)
	return w
}

// appendHead opens an answer of ours. Its time is the one in our id.
func appendHead(dst []byte, object string, meta dialect.Meta) []byte {
	dst = append(dst, `{"id":`...)
	dst = rawjson.AppendQuoted(dst, "chatcmpl-"+meta.RequestID)
	dst = append(dst, `,"object":"`...)
	dst = append(dst, object...)
	dst = append(dst, `","created":`...)
	dst = strconv.AppendInt(dst, createdAt(meta.RequestID), 10)
	dst = append(dst, `,"model":`...)
	return rawjson.AppendQuoted(dst, meta.Model)
}

// createdAt is the time of a UUIDv7 in Unix seconds, 0 for any other id.
func createdAt(id string) int64 {
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 {
		return 0
	}
	seconds, _ := u.Time().UnixTime()
	return seconds
}

func (w *chunkWriter) encode(dst []byte, events []neutral.Event) ([]byte, error) {
	for i := range events {
		var err error
		if dst, err = w.event(dst, &events[i]); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (w *chunkWriter) event(dst []byte, e *neutral.Event) ([]byte, error) {
	switch e.Kind {
	case neutral.Start:
		return w.begin(dst), nil
	case neutral.Text:
		return w.text(dst, "content", e.Text), nil
	case neutral.Reasoning:
		// The name under which most providers send it and most clients look for it.
		return w.text(dst, "reasoning_content", e.Text), nil
	case neutral.Refusal:
		w.refused = true
		return w.text(dst, "refusal", e.Text), nil
	case neutral.ToolCallStart:
		return w.call(dst, e), nil
	case neutral.ToolCallDelta:
		return w.arguments(dst, e), nil
	case neutral.Usage:
		w.reported = neutral.LastUsage(w.reported, e.Usage)
	case neutral.Stop:
		return w.stop(dst, e.Stop), nil
	case neutral.Image:
		return dst, &unsayableError{"an image in an answer"}
	case neutral.Opaque, neutral.ToolCallEnd, neutral.Structure, neutral.Error, neutral.Ping, neutral.ReasoningSeal:
		// A call ends here with its last fragment; a seal is its issuer's alone (K4).
	}
	return dst, nil
}

// begin writes the role, once and ahead of everything.
func (w *chunkWriter) begin(dst []byte) []byte {
	if w.began {
		return dst
	}
	w.began = true
	dst = w.open(dst)
	dst = append(dst, `"role":"assistant","content":""`...)
	return w.close(dst, "")
}

// open and close write what stands around a delta.
func (w *chunkWriter) open(dst []byte) []byte {
	dst = append(dst, w.head...)
	return append(dst, `,"choices":[{"index":0,"delta":{`...)
}

func (w *chunkWriter) close(dst []byte, reason string) []byte {
	if reason == "" {
		return append(dst, "},\"finish_reason\":null}]}\n\n"...)
	}
	dst = append(dst, `},"finish_reason":"`...)
	dst = append(dst, reason...)
	return append(dst, "\"}]}\n\n"...)
}

func (w *chunkWriter) text(dst []byte, key string, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	dst = w.open(w.begin(dst))
	dst = append(dst, '"')
	dst = append(dst, key...)
	dst = append(dst, `":`...)
	return w.close(rawjson.AppendQuoted(dst, text), "")
}

// call begins a tool call: its first fragment has id, type and name, later ones
// arguments alone (P11).
func (w *chunkWriter) call(dst []byte, e *neutral.Event) []byte {
	w.sawTool = true
	dst = w.fragment(w.begin(dst), e.Index)
	dst = append(dst, `,"id":`...)
	dst = rawjson.AppendQuoted(dst, callID(e.Tool.ID, w.id, e.Index))
	dst = append(dst, `,"type":"function","function":{"name":`...)
	dst = rawjson.AppendQuoted(dst, e.Tool.Name)
	return w.close(append(dst, `,"arguments":""}}]`...), "")
}

func (w *chunkWriter) arguments(dst []byte, e *neutral.Event) []byte {
	if len(e.Text) == 0 {
		return dst
	}
	dst = w.fragment(w.begin(dst), e.Index)
	dst = append(dst, `,"function":{"arguments":`...)
	dst = rawjson.AppendQuoted(dst, e.Text)
	return w.close(append(dst, `}}]`...), "")
}

func (w *chunkWriter) fragment(dst []byte, index int) []byte {
	dst = append(w.open(dst), `"tool_calls":[{"index":`...)
	return strconv.AppendInt(dst, int64(index), 10)
}

// callID is a call's id, made of ours where a dialect has none.
func callID(id, request string, index int) string {
	if id != "" {
		return id
	}
	return "call_" + request + "_" + strconv.Itoa(index)
}

func (w *chunkWriter) stop(dst []byte, stop neutral.StopReason) []byte {
	dst = w.open(w.begin(dst))
	return w.close(dst, reasonOf(stop, w.sawTool, w.refused))
}

// reasonOf is a finish reason in the words that official clients know. A refusal that
// was put into words is an ordinary end here; one without a word is a filter's.
func reasonOf(stop neutral.StopReason, sawTool, refused bool) string {
	switch {
	case stop == neutral.StopEnd && sawTool:
		return string(neutral.StopToolCalls)
	case stop == neutral.StopRefusal && refused:
		return string(neutral.StopEnd)
	case stop == neutral.StopRefusal:
		return string(neutral.StopContentFilter)
	}
	return string(stop)
}

// usage writes the chunk that has usage and no choices. What was not reported is not
// invented (M4).
func (w *chunkWriter) usage(dst []byte) []byte {
	if w.reported == (usage.Usage{}) {
		return dst
	}
	dst = append(dst, w.head...)
	dst = append(dst, `,"choices":[]`...)
	return append(appendUsage(dst, w.reported), "}\n\n"...)
}

// appendUsage appends the usage member in OpenAI's sense, which is the neutral one.
// Its three sums are always there for clients that add them up; a detail is there
// where it was reported.
func appendUsage(dst []byte, u usage.Usage) []byte {
	in, out := u.Input.Or(0), u.Output.Or(0)
	for _, sum := range []struct {
		key string
		n   int64
	}{{`,"usage":{"prompt_tokens":`, in}, {`,"completion_tokens":`, out}, {`,"total_tokens":`, in + out}} {
		dst = append(dst, sum.key...)
		dst = strconv.AppendInt(dst, sum.n, 10)
	}
	if u.CachedInput.Known() || u.CacheWrite5m.Known() || u.CacheWrite1h.Known() {
		dst = append(dst, `,"prompt_tokens_details":{"cached_tokens":`...)
		dst = strconv.AppendInt(dst, u.CachedInput.Or(0), 10)
		if u.CacheWrite5m.Known() || u.CacheWrite1h.Known() {
			dst = append(dst, `,"cache_write_tokens":`...)
			dst = strconv.AppendInt(dst, u.CacheWrite5m.Or(0)+u.CacheWrite1h.Or(0), 10)
		}
		dst = append(dst, '}')
	}
	if u.Reasoning.Known() {
		dst = append(dst, `,"completion_tokens_details":{"reasoning_tokens":`...)
		dst = strconv.AppendInt(dst, u.Reasoning.N, 10)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

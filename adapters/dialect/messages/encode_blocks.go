package messages

import (
	"errors"
	"strconv"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// errLateDelta is a piece of a tool call that is no longer, or not yet, open.
var errLateDelta = errors.New("messages: a piece of a tool call that is not open")

// blockWriter writes the events of another dialect as this protocol's: message_start
// once, blocks with rising indexes, each of them started, continued by deltas of its
// own type and stopped, then message_delta and message_stop (P11).
type blockWriter struct {
	meta  dialect.Meta
	tally neutral.Tally
	begun bool
	// next is the index of the next block, open the kind of the block of text or
	// thinking that is open at next-1, 0 for none.
	next int
	open blockKind
	// calls are the tool calls in the order of their events' indexes.
	calls []writtenCall
}

// writtenCall is a call's block. Several may be open at once: some providers send
// parallel calls in turns, and clients tell the pieces apart by the block's index.
type writtenCall struct {
	block int
	open  bool
	args  rawjson.Balance
	said  bool
}

// encode writes a chunk. Of several answers to one request it takes the first.
func (w *blockWriter) encode(dst []byte, c *neutral.Chunk) ([]byte, error) {
	if !w.begun {
		w.begun = true
		dst = w.start(dst, c)
	}
	w.tally.Add(c)
	for i := range c.Events {
		if c.Events[i].Choice != 0 {
			continue
		}
		var err error
		if dst, err = w.event(dst, &c.Events[i]); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// start writes message_start. Most providers count the input at the end: until then
// clients see what admission estimated, not an empty context.
func (w *blockWriter) start(dst []byte, c *neutral.Chunk) []byte {
	var first neutral.Tally
	first.Add(c)
	dst = append(dst, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":"...)
	dst = rawjson.AppendQuoted(dst, messageID(w.meta))
	dst = append(dst, `,"type":"message","role":"assistant","model":`...)
	dst = rawjson.AppendQuoted(dst, w.meta.Model)
	dst = append(dst, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":`...)
	u := first.Usage
	dst = appendUsage(dst, u, w.meta.InputTokens, 0)
	return append(dst, "}}\n\n"...)
}

func (w *blockWriter) event(dst []byte, e *neutral.Event) ([]byte, error) {
	switch e.Kind {
	case neutral.Text, neutral.Refusal:
		return w.piece(dst, textBlock, e.Text), nil
	case neutral.Reasoning:
		return w.piece(dst, thinkingBlock, e.Text), nil
	case neutral.ReasoningSeal:
		return w.seal(dst, &e.Seal), nil
	case neutral.ToolCallStart:
		return w.startCall(dst, e)
	case neutral.ToolCallDelta:
		return w.callDelta(dst, e)
	case neutral.ToolCallEnd:
		if e.Index >= 0 && e.Index < len(w.calls) {
			dst = w.stopCall(dst, &w.calls[e.Index])
		}
	case neutral.Stop:
		dst = w.closeAll(dst)
	}
	return dst, nil
}

// piece writes a piece of text or thinking, in the open block if it is of that kind.
func (w *blockWriter) piece(dst []byte, kind blockKind, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	dst = w.to(dst, kind)
	dst = w.head(dst, "content_block_delta", w.next-1)
	if kind == textBlock {
		dst = append(dst, `,"delta":{"type":"text_delta","text":`...)
	} else {
		dst = append(dst, `,"delta":{"type":"thinking_delta","thinking":`...)
	}
	dst = rawjson.AppendQuoted(dst, text)
	return append(dst, "}}\n\n"...)
}

// to opens a block of a kind unless one is open.
func (w *blockWriter) to(dst []byte, kind blockKind) []byte {
	if w.open == kind {
		return dst
	}
	dst = w.closeAll(dst)
	w.open = kind
	dst = w.head(dst, "content_block_start", w.next)
	w.next++
	if kind == textBlock {
		return append(dst, ",\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"...)
	}
	return append(dst, ",\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n"...)
}

// seal closes a piece of thinking with its signature, ours where another dialect's
// provider gave it. Reasoning that was withheld is a signed block without text.
func (w *blockWriter) seal(dst []byte, o *neutral.OpaqueReasoning) []byte {
	if o.Redacted != "" {
		dst = w.closeAll(dst)
		dst = w.head(dst, "content_block_start", w.next)
		dst = append(dst, `,"content_block":{"type":"redacted_thinking","data":`...)
		dst = rawjson.AppendQuoted(dst, o.Redacted)
		dst = append(dst, "}}\n\n"...)
		w.next++
		return w.stopBlock(dst, w.next-1)
	}
	dst = w.to(dst, thinkingBlock)
	dst = w.head(dst, "content_block_delta", w.next-1)
	dst = append(dst, `,"delta":{"type":"signature_delta","signature":`...)
	dst = rawjson.AppendQuoted(dst, signature(*o))
	dst = append(dst, "}}\n\n"...)
	return w.closeText(dst)
}

func (w *blockWriter) startCall(dst []byte, e *neutral.Event) ([]byte, error) {
	if e.Index != len(w.calls) || len(w.calls) >= maxToolCalls {
		return dst, errLateDelta
	}
	dst = w.closeText(dst)
	for i := range w.calls {
		// A call whose arguments are whole is over; others may go on in turns.
		if c := &w.calls[i]; c.said && !c.args.Open() {
			dst = w.stopCall(dst, c)
		}
	}
	w.calls = append(w.calls, writtenCall{block: w.next, open: true})
	dst = w.head(dst, "content_block_start", w.next)
	w.next++
	id := e.Tool.ID
	if id == "" {
		id = "toolu_" + w.meta.RequestID + "_" + strconv.Itoa(e.Index)
	}
	dst = append(dst, `,"content_block":{"type":"tool_use","id":`...)
	dst = rawjson.AppendQuoted(dst, callID(id))
	dst = append(dst, `,"name":`...)
	dst = rawjson.AppendQuoted(dst, e.Tool.Name)
	return append(dst, ",\"input\":{}}}\n\n"...), nil
}

func (w *blockWriter) callDelta(dst []byte, e *neutral.Event) ([]byte, error) {
	if len(e.Text) == 0 {
		return dst, nil
	}
	if e.Index < 0 || e.Index >= len(w.calls) || !w.calls[e.Index].open {
		return dst, errLateDelta
	}
	c := &w.calls[e.Index]
	c.said = true
	c.args.Add(e.Text)
	dst = w.head(dst, "content_block_delta", c.block)
	dst = append(dst, `,"delta":{"type":"input_json_delta","partial_json":`...)
	dst = rawjson.AppendQuoted(dst, e.Text)
	return append(dst, "}}\n\n"...), nil
}

// head begins an event that names a block.
func (w *blockWriter) head(dst []byte, kind string, index int) []byte {
	dst = append(dst, "event: "...)
	dst = append(dst, kind...)
	dst = append(dst, "\ndata: {\"type\":\""...)
	dst = append(dst, kind...)
	dst = append(dst, `","index":`...)
	return strconv.AppendInt(dst, int64(index), 10)
}

func (w *blockWriter) stopBlock(dst []byte, index int) []byte {
	return append(w.head(dst, "content_block_stop", index), "}\n\n"...)
}

func (w *blockWriter) closeText(dst []byte) []byte {
	if w.open == 0 {
		return dst
	}
	w.open = 0
	return w.stopBlock(dst, w.next-1)
}

func (w *blockWriter) stopCall(dst []byte, c *writtenCall) []byte {
	if !c.open {
		return dst
	}
	c.open = false
	return w.stopBlock(dst, c.block)
}

func (w *blockWriter) closeAll(dst []byte) []byte {
	dst = w.closeText(dst)
	for i := range w.calls {
		dst = w.stopCall(dst, &w.calls[i])
	}
	return dst
}

// end writes the end of the message. It waits for the end of the stream because
// usage may come behind the stop reason, and message_delta comes once.
func (w *blockWriter) end(dst []byte) []byte {
	if !w.begun {
		dst = w.start(dst, &neutral.Chunk{})
	}
	dst = w.closeAll(dst)
	dst = append(dst, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"...)
	dst = rawjson.AppendQuoted(dst, stopWord(w.tally.Stop, w.tally.FirstOutput, len(w.calls) > 0))
	dst = append(dst, `,"stop_sequence":null},"usage":`...)
	dst = appendUsage(dst, w.tally.Usage, w.meta.InputTokens, seenTokens(w.tally.OutputBytes))
	dst = append(dst, "}\n\n"...)
	return append(dst, messageStop...)
}

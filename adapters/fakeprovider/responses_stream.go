package fakeprovider

import "strconv"

// responseEvents collects the events of one stream. Their bytes share one buffer: at
// a benchmark's rates an allocation an event would be most of the work.
type responseEvents struct {
	events []event
	buffer []byte
	index  int
}

// responseEventRoom is the room planned for one event.
const responseEventRoom = 192

func (responses) events(a *answer) []event {
	n := a.usage.output + 4*len(a.calls) + 16
	r := responseEvents{events: make([]event, 0, n), buffer: make([]byte, 0, n*responseEventRoom)}
	if !a.form.noRoleChunk {
		for _, name := range []string{"response.created", "response.in_progress"} {
			r.add(name, 0, false, func(b []byte) []byte {
				return appendResponse(append(b, `,"response":`...), a, "in_progress", false)
			})
		}
	}
	status, _ := statusOf(a)
	for _, item := range outputOf(a) {
		r.item(a, item, itemStatus(status))
	}
	if status != "in_progress" && !a.form.noSentinel {
		r.add("response."+status, 0, false, func(b []byte) []byte {
			return appendResponse(append(b, `,"response":`...), a, status, true)
		})
		r.events[len(r.events)-1].last = true
	}
	return r.events
}

// add appends one event whose members after its number rest writes.
func (r *responseEvents) add(name string, tokens int, output bool, rest func([]byte) []byte) {
	start := len(r.buffer)
	b := append(append(r.buffer, `{"type":"`...), name...)
	b = append(b, `","sequence_number":`...)
	b = strconv.AppendInt(b, int64(len(r.events)), 10)
	r.buffer = append(rest(b), '}')
	r.events = append(r.events, event{name: name, data: r.buffer[start:len(r.buffer):len(r.buffer)], tokens: tokens, output: output})
}

// item adds an item: its beginning, its pieces, and its end from the inside out.
func (r *responseEvents) item(a *answer, item outputItem, status string) {
	whole := func(name string, full, output bool) {
		r.add(name, 0, output, func(b []byte) []byte {
			return item.append(append(r.at(b), `,"item":`...), status, full)
		})
	}
	call := item.kind == "function_call"
	whole("response.output_item.added", false, call)
	part, text, index, member := item.words()
	place := func(b []byte) []byte {
		b = append(append(append(b, `,"item_id":"`...), item.id...), '"')
		b = r.at(b)
		if index != "" {
			b = append(append(append(b, `,"`...), index...), `":0`...)
		}
		return b
	}
	parted := func(what string, pieces []string) {
		if !call {
			r.add(part+what, 0, false, func(b []byte) []byte {
				return item.appendPart(append(place(b), `,"part":`...), pieces)
			})
		}
	}
	parted(".added", nil)
	tokensLeft := len(item.pieces)
	if !call || !a.form.wholeCalls {
		tokensLeft = 0
		for _, piece := range item.pieces {
			r.add(text+".delta", 1, true, func(b []byte) []byte {
				return appendString(append(place(b), `,"delta":`...), piece)
			})
		}
	}
	r.add(text+".done", tokensLeft, tokensLeft > 0, func(b []byte) []byte {
		b = append(append(append(place(b), `,"`...), member...), `":`...)
		return appendJoined(b, item.pieces)
	})
	parted(".done", item.pieces)
	whole("response.output_item.done", true, false)
	r.index++
}

func (r *responseEvents) at(b []byte) []byte {
	return strconv.AppendInt(append(b, `,"output_index":`...), int64(r.index), 10)
}

// words are the names of an item's events and of what places and holds its text.
func (i outputItem) words() (part, text, index, member string) {
	switch i.kind {
	case "function_call":
		return "", "response.function_call_arguments", "", "arguments"
	case "reasoning":
		return "response.reasoning_summary_part", "response.reasoning_summary_text", "summary_index", "text"
	case "refusal":
		return "response.content_part", "response.refusal", "content_index", "refusal"
	default:
		return "response.content_part", "response.output_text", "content_index", "text"
	}
}

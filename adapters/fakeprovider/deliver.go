package fakeprovider

import (
	"net"
	"net/http"
	"strconv"
)

// endSilent ends a call whose client left or whose server closes.
const endSilent endHow = -1

// response is a body sent in one piece.
type response struct {
	status      int // 0: 200
	contentType string
	body        []byte
	tokens      int
	cut         *ending // breaks in the middle of the body
}

// begin sends the head of a 200 at once.
func (c *call) begin(contentType string) {
	c.beginStatus(http.StatusOK, contentType, -1)
	c.flush()
}

// beginStatus writes the head. length < 0: not announced.
func (c *call) beginStatus(status int, contentType string, length int) {
	header := c.w.Header()
	header["Content-Type"] = []string{contentType}
	header["X-Request-Id"] = []string{"req_fake_" + strconv.FormatInt(c.facts.sequence, 10)}
	if length >= 0 {
		header["Content-Length"] = []string{strconv.Itoa(length)}
	}
	c.status = status
	c.w.WriteHeader(status)
}

// send writes a body that is not a stream.
func (c *call) send(out response) endHow {
	if out.status == 0 {
		out.status = http.StatusOK
	}
	c.delivered = out.tokens // made in full before the first byte, whatever arrives
	body := out.body
	if c.plan.gzip {
		c.w.Header().Set("Content-Encoding", "gzip")
		body = compress(body)
	}
	if out.cut == nil {
		c.beginStatus(out.status, out.contentType, len(body))
		if c.writeSplit(body) {
			return endComplete
		}
		return endSilent
	}
	half := body[:len(body)/2]
	length := len(body)
	switch out.cut.how {
	case endEOF:
		length = len(half)
	case endChunk:
		length = -1
	case endClose:
		length = -1
		c.w.Header()["Transfer-Encoding"] = []string{"identity"}
	case endFIN, endRST, endStall, endComplete, endSilent:
	}
	c.beginStatus(out.status, out.contentType, length)
	if !c.writeSplit(half) {
		return endSilent
	}
	c.flush()
	if out.cut.how == endStall {
		return c.silence()
	}
	return out.cut.how
}

// segment is one write of a stream.
type segment struct {
	bytes  []byte
	tokens int
}

// stream sends a streamed answer.
func (c *call) stream() endHow {
	segments, end := c.compose()
	if c.plan.gzip {
		c.w.Header().Set("Content-Encoding", "gzip")
		segments = compressSegments(segments)
	}
	if end == endClose {
		// The server closes after a body that has neither a length nor chunks.
		c.w.Header()["Transfer-Encoding"] = []string{"identity"}
	}
	c.beginStatus(http.StatusOK, c.dialect.streamType(), -1)
	if c.plan.gap > 0 || end != endComplete {
		c.flush()
	}
	for i, s := range segments {
		if i > 0 && !c.wait(c.plan.gap) {
			return endSilent
		}
		if !c.write(s.bytes) {
			return endSilent
		}
		if i+1 < len(segments) || end != endComplete {
			c.flush()
		}
		c.delivered += s.tokens
	}
	if end == endStall {
		return c.silence()
	}
	return end
}

// eventRoom is what framing adds to an event, usually.
const eventRoom = len("data: \n\n")

// compose turns the answer into the writes that the plan asks for.
func (c *call) compose() ([]segment, endHow) {
	events, end := c.script(c.dialect.events(c.planned))
	p := c.plan
	if p.framing.unended && end == endComplete && len(events) > 0 {
		events[len(events)-1].last = true
	}
	room := 0
	for _, e := range events {
		room += len(e.data) + eventRoom
	}
	resplit := p.split > 0 || p.splitAt > 0
	var segments []segment
	for i, e := range events {
		if i == 0 {
			segments = append(segments, segment{bytes: make([]byte, 0, room)})
		} else if p.gap > 0 || resplit {
			segments = append(segments, segment{})
		}
		last := &segments[len(segments)-1]
		last.bytes = c.dialect.frame(last.bytes, p.framing, i, e)
		last.tokens += e.tokens
	}
	if resplit {
		segments = splitSegments(segments, p.split, p.splitAt)
	}
	return segments, end
}

// script applies insertions and cuts to the events of a good answer.
func (c *call) script(events []event) ([]event, endHow) {
	if in := c.plan.insert; in != nil {
		at := position(events, in.after)
		foreign := c.dialect.malformedEvent()
		if in.failure != nil {
			foreign = c.dialect.errorEvent(*in.failure, c.planned, in.bare)
		}
		changed := append(append([]event{}, events[:at]...), foreign)
		if in.goesOn {
			changed = append(changed, events[at:]...)
		}
		events = changed
	}
	if c.plan.ending.how == endComplete {
		return events, endComplete
	}
	return events[:position(events, c.plan.ending.after)], c.plan.ending.how
}

// position is the index after which so many output events have gone by.
func position(events []event, outputs int) int {
	if outputs == beforeAll {
		return 0
	}
	for i, e := range events {
		if e.output {
			if outputs == 0 {
				return i
			}
			outputs--
		}
	}
	// All output is before: the place is ahead of what closes the answer.
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].output {
			return i + 1
		}
	}
	return len(events)
}

// splitSegments cuts a stream anew, at one byte or every so many, whatever its
// events are. Tokens count where their event's last byte goes.
func splitSegments(segments []segment, every, at int) []segment {
	var out []segment
	var piece segment
	offset := 0
	for _, s := range segments {
		for rest := s.bytes; len(rest) > 0; {
			n := len(rest)
			if every > 0 {
				n = min(n, every-len(piece.bytes))
			}
			if at > offset {
				n = min(n, at-offset)
			}
			piece.bytes = append(piece.bytes, rest[:n]...)
			rest, offset = rest[n:], offset+n
			if len(piece.bytes) == every || offset == at {
				out, piece = append(out, piece), segment{}
			}
		}
		if len(piece.bytes) == 0 && len(out) > 0 {
			out[len(out)-1].tokens += s.tokens
		} else {
			piece.tokens += s.tokens
		}
	}
	if len(piece.bytes) > 0 {
		out = append(out, piece)
	}
	return out
}

// compressSegments makes one gzip body of a stream, as a provider does that
// compresses whatever it sends.
func compressSegments(segments []segment) []segment {
	var all segment
	for _, s := range segments {
		all.bytes = append(all.bytes, s.bytes...)
		all.tokens += s.tokens
	}
	return []segment{{compress(all.bytes), all.tokens}}
}

// trickle sends comments and nothing else.
func (c *call) trickle() endHow {
	c.begin(c.dialect.streamType())
	for {
		if !c.write(c.dialect.idle()) {
			return endSilent
		}
		c.flush()
		if !c.wait(c.plan.every) {
			return endSilent
		}
	}
}

// writeSplit writes a body as the plan cuts it.
func (c *call) writeSplit(body []byte) bool {
	if c.plan.split == 0 && c.plan.splitAt == 0 {
		return c.write(body)
	}
	for i, s := range splitSegments([]segment{{bytes: body}}, c.plan.split, c.plan.splitAt) {
		if i > 0 && !c.wait(c.plan.gap) {
			return false
		}
		if !c.write(s.bytes) {
			return false
		}
		c.flush()
	}
	return true
}

// write reports whether the client still takes bytes.
func (c *call) write(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	n, err := c.w.Write(b)
	c.bytes += int64(n)
	return err == nil
}

func (c *call) flush() {
	_ = http.NewResponseController(c.w).Flush() // a client that left is seen by the next write or wait
}

// tearDown ends the connection in the way the plan says. The reply of a
// complete call is left to net/http.
func (c *call) tearDown(end endHow) {
	switch end {
	case endComplete, endEOF, endClose:
		return
	case endFIN, endChunk, endRST, endStall, endSilent:
	}
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // net/http's way to drop a connection
	}
	defer conn.Close()
	switch end {
	case endChunk:
		_, _ = conn.Write([]byte("400\r\ndata: {\"id\":"))
	case endRST:
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // close sends RST
		}
	case endComplete, endEOF, endClose, endFIN, endStall, endSilent:
	}
}

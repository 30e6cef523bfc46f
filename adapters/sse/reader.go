package sse

import (
	"bytes"
	"fmt"
	"io"
)

const (
	// DefaultMaxFrame is the largest event that is read: an image in base64 comes as
	// one (S12). bufio.Scanner's 64 KiB has been mistaken for the end of a stream.
	DefaultMaxFrame = 16 << 20
	// initialBuffer takes a network read; events are a few hundred bytes. Every open
	// stream has one (S9).
	initialBuffer = 4 << 10
	// keepBuffer is the most that stays allocated after a larger frame (S9).
	keepBuffer = 64 << 10
	// maxEmptyReads is how often a reader may return nothing, as bufio has it.
	maxEmptyReads = 100
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// FrameTooLargeError is an event above the reader's limit. The stream cannot be
// read on.
type FrameTooLargeError struct{ Limit int }

// Error names the limit in bytes.
func (e *FrameTooLargeError) Error() string {
	return fmt.Sprintf("sse: event larger than %d bytes", e.Limit)
}

// Event is one event. Its memory is valid until the next call of Next.
type Event struct {
	// Name is the event: field, empty when there was none.
	Name []byte
	// Data is the data: fields joined by LF.
	Data []byte
}

// Stats count what a reader has met.
type Stats struct {
	// Bytes of the stream, framing and comments included.
	Bytes int64
	// Events that were dispatched.
	Events int64
	// Comments are lines that a provider sends to keep a connection open. They show
	// that it is alive and not that it is generating (W11).
	Comments int64
	// Stray are lines that are no field of the standard. A body of nothing else is
	// not an event stream.
	Stray int64
}

// Reader reads events. It buffers no more than one frame and one read.
type Reader struct {
	src   io.Reader
	limit int
	err   error
	stats Stats

	// buf[pos:end] is unread; the line at pos has no end before scanned.
	buf               []byte
	pos, end, scanned int
	// skipLF says that the last line ended in CR: a LF at pos still belongs to it.
	skipLF bool
	// begun is set once the first line, which may carry a byte order mark, is read.
	begun bool
	event pending
	// ready says that event is whole, taken that it was returned.
	ready, taken bool
}

// pending is an event whose blank line has not come. One line of data stays where
// it is in the reader's buffer; a second one moves both to joined.
type pending struct {
	// size counts the bytes of all lines since the last blank one.
	size       int
	lines      int
	start, end int
	joined     []byte
	name       []byte
}

// NewReader reads events of up to maxFrame bytes from src; 0 is DefaultMaxFrame.
func NewReader(src io.Reader, maxFrame int) *Reader {
	if maxFrame <= 0 {
		maxFrame = DefaultMaxFrame
	}
	return &Reader{src: src, limit: maxFrame, buf: make([]byte, initialBuffer)}
}

// Stats are the counts so far.
func (r *Reader) Stats() Stats { return r.stats }

// Next reads the next event. The error is io.EOF at the end of the stream, a
// *FrameTooLargeError, or the source's own; it stays.
func (r *Reader) Next() (Event, error) {
	for !r.Ready() {
		if err := r.fill(); err != nil {
			return Event{}, err
		}
	}
	r.ready, r.taken = false, true
	return Event{Name: r.event.name, Data: r.data()}, nil
}

// Ready reports whether Next has an event without reading from the source, which
// may wait. Like Next, it ends the life of the event before.
func (r *Reader) Ready() bool {
	if !r.ready {
		r.ready = r.scan()
	}
	return r.ready
}

// scan goes on through what is buffered, up to the end of an event.
func (r *Reader) scan() bool {
	if r.taken {
		r.taken = false
		r.release()
	}
	for r.event.size <= r.limit {
		start, end, ok := r.line()
		if !ok {
			return false
		}
		if r.event.size += end - start; r.event.size > r.limit {
			r.err = &FrameTooLargeError{Limit: r.limit}
			return false
		}
		// The mark counts towards the limit, as it does while its line has no end yet.
		if !r.begun && bytes.HasPrefix(r.buf[start:end], byteOrderMark) {
			start += len(byteOrderMark)
		}
		r.begun = true
		if start < end {
			r.field(start, end)
			continue
		}
		r.event.size = 0
		if r.event.lines > 0 {
			r.stats.Events++
			return true
		}
		// A blank line without data before it ends only the event's name.
		r.event.name = r.event.name[:0]
	}
	return false
}

// release forgets the event that was returned last, and the memory that a large
// one needed.
func (r *Reader) release() {
	e := &r.event
	e.size, e.lines, e.name = 0, 0, e.name[:0]
	if cap(e.joined) > keepBuffer {
		e.joined = nil
	}
	if len(r.buf) > keepBuffer && r.end-r.pos <= keepBuffer {
		small := make([]byte, keepBuffer)
		n := copy(small, r.buf[r.pos:r.end])
		r.scanned -= r.pos
		r.buf, r.pos, r.end = small, 0, n
	}
}

// line finds the next whole line, buf[start:end] without its ending, and steps
// over it.
func (r *Reader) line() (start, end int, ok bool) {
	if r.skipLF && r.pos < r.end {
		if r.buf[r.pos] == '\n' {
			r.pos++
		}
		r.skipLF = false
	}
	r.scanned = max(r.scanned, r.pos)
	rest := r.buf[r.scanned:r.end]
	lf := bytes.IndexByte(rest, '\n')
	if lf >= 0 {
		rest = rest[:lf]
	}
	// CR ends a line at once, without waiting for a LF that may not come.
	cr := bytes.IndexByte(rest, '\r')
	at := lf
	if cr >= 0 {
		at, r.skipLF = cr, true
	}
	if at < 0 {
		r.scanned = r.end
		return 0, 0, false
	}
	start, end = r.pos, r.scanned+at
	r.pos = end + 1
	return start, end, true
}

// field takes one line that is not blank.
func (r *Reader) field(start, end int) {
	line := r.buf[start:end]
	colon := bytes.IndexByte(line, ':')
	if colon == 0 {
		r.stats.Comments++
		return
	}
	name, value := line, end
	if colon > 0 {
		name, value = line[:colon], start+colon+1
		if value < end && r.buf[value] == ' ' {
			value++
		}
	}
	switch string(name) {
	case "data":
		r.addData(value, end)
	case "event":
		r.event.name = append(r.event.name[:0], r.buf[value:end]...)
	case "id", "retry":
		// For clients that reconnect; an answer of a model cannot be taken up again.
	default:
		r.stats.Stray++
	}
}

func (r *Reader) addData(start, end int) {
	e := &r.event
	switch e.lines++; e.lines {
	case 1:
		e.start, e.end = start, end
		return
	case 2:
		e.joined = append(e.joined[:0], r.buf[e.start:e.end]...)
	}
	e.joined = append(e.joined, '\n')
	e.joined = append(e.joined, r.buf[start:end]...)
}

func (r *Reader) data() []byte {
	if r.event.lines == 1 {
		return r.buf[r.event.start:r.event.end]
	}
	return r.event.joined
}

// fill reads more of the source, at least one byte.
func (r *Reader) fill() error {
	if r.err != nil {
		return r.err
	}
	if r.event.size+r.end-r.pos > r.limit {
		r.err = &FrameTooLargeError{Limit: r.limit}
		return r.err
	}
	r.makeRoom()
	for range maxEmptyReads {
		// No more than keepBuffer a read: after a large frame the buffer is large, and
		// what comes after the frame should not fill it.
		n, err := r.src.Read(r.buf[r.end:min(len(r.buf), r.end+keepBuffer)])
		r.end += n
		r.stats.Bytes += int64(n)
		// An error that came with bytes is returned when they are used up.
		r.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	r.err = io.ErrNoProgress
	return r.err
}

// makeRoom moves what must be kept to the front of the buffer, or grows it.
func (r *Reader) makeRoom() {
	if r.end < len(r.buf) {
		return
	}
	keep := r.pos
	if r.event.lines == 1 {
		keep = r.event.start
	}
	dst := r.buf
	if r.end-keep > len(r.buf)/2 {
		dst = make([]byte, 2*len(r.buf))
	}
	copy(dst, r.buf[keep:r.end])
	r.buf = dst
	r.pos, r.end, r.scanned = r.pos-keep, r.end-keep, r.scanned-keep
	r.event.start, r.event.end = r.event.start-keep, r.event.end-keep
}

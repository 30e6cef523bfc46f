package fakeprovider

import "strconv"

// framing is how events stand on the wire (S12). The zero value is what most
// providers do: LF, one space, one data line.
type framing struct {
	ends      lineEnds
	noSpace   bool
	multiLine bool
	comments  bool
	fields    bool
	bom       bool
	unended   bool // the last event lacks its blank line
}

type lineEnds int

const (
	endsLF lineEnds = iota
	endsCRLF
	endsCR
	endsMixed
)

// mixedEnds are pairs of (end of a line, blank line). CR followed by a blank
// line of LF is left out: that is one CRLF, hence no blank line at all.
var mixedEnds = [...][2]string{
	{"\n", "\n"}, {"\r\n", "\r\n"}, {"\r", "\r"}, {"\r\n", "\n"}, {"\n", "\r\n"}, {"\r", "\r\n"}, {"\n", "\r"},
}

// endsOf returns the line end and the blank line of the n-th event.
func (f framing) endsOf(n int) (line, blank string) {
	switch f.ends {
	case endsCRLF:
		return "\r\n", "\r\n"
	case endsCR:
		return "\r", "\r"
	case endsMixed:
		pair := mixedEnds[n%len(mixedEnds)]
		return pair[0], pair[1]
	default:
		return "\n", "\n"
	}
}

const byteOrderMark = "\uFEFF"

func (f framing) append(dst []byte, n int, e event) []byte {
	line, blank := f.endsOf(n)
	if f.bom && n == 0 {
		dst = append(dst, byteOrderMark...)
	}
	if f.comments {
		dst = append(append(dst, ": PROCESSING"...), line...)
		dst = append(dst, blank...)
	}
	if e.name != "" {
		dst = append(append(append(dst, "event: "...), e.name...), line...)
	}
	if f.fields {
		dst = append(append(dst, "event: message"...), line...)
		dst = append(strconv.AppendInt(append(dst, "id: "...), int64(n), 10), line...)
		dst = append(append(dst, "retry: 3000"...), line...)
	}
	dst = f.appendData(dst, e.data, line)
	if f.comments {
		dst = append(append(dst, ":"...), line...)
	}
	if f.unended && e.last {
		return dst
	}
	return append(dst, blank...)
}

// maxDataLines bounds how many lines one event is spread over.
const maxDataLines = 4

// appendData writes the payload on one data line, or breaks it after its
// first commas outside strings: the receiver joins lines with LF, which JSON
// allows there.
func (f framing) appendData(dst, data []byte, line string) []byte {
	start, lines := 0, 1
	if f.multiLine {
		quoted := false
		for i := 0; i < len(data) && lines < maxDataLines; i++ {
			switch c := data[i]; {
			case c == '\\' && quoted:
				i++
			case c == '"':
				quoted = !quoted
			case c == ',' && !quoted:
				dst = f.appendLine(dst, data[start:i+1], line)
				start, lines = i+1, lines+1
			}
		}
	}
	return f.appendLine(dst, data[start:], line)
}

func (f framing) appendLine(dst, text []byte, line string) []byte {
	dst = append(dst, "data:"...)
	if !f.noSpace {
		dst = append(dst, ' ')
	}
	return append(append(dst, text...), line...)
}

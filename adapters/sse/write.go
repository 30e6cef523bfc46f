package sse

import "bytes"

// Comment is a keep-alive: a line that every client skips (S10).
const Comment = ": keep-alive\n\n"

// Append writes one event. Data with line breaks becomes several data: fields,
// since a bare LF would end the event in its middle. An empty name writes no event:
// field.
func Append(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(dst, "event: "...)
		dst = append(dst, name...)
		dst = append(dst, '\n')
	}
	oneLine := bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0
	for {
		dst = append(dst, "data: "...)
		i := -1
		if !oneLine {
			i = bytes.IndexAny(data, "\r\n")
		}
		if i < 0 {
			dst = append(dst, data...)
			return append(dst, '\n', '\n')
		}
		dst = append(dst, data[:i]...)
		dst = append(dst, '\n')
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
}

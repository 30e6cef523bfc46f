// Package sse reads and writes server-sent events as the HTML standard frames them
// (S12): lines end in LF, CR or CRLF, data may span lines, comments may stand
// anywhere, a byte order mark may come first, and a final event without its blank
// line never happened. It works on bytes and never on characters, so that a read
// may be split anywhere.
package sse

package eventstore

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"time"
	"unicode/utf8"
)

// A row's body holds one line an event:
//
//	type version observed_unix_micros {json}\n
//
// Readable in psql, and a reader that does not want an event skips it by looking
// for one byte: JSON text written here never holds a raw newline. Event types and
// numbers stay outside the JSON so that a fold can choose without decoding.

const (
	// maxEventBytes bounds one event's JSON. Events are facts without content
	// (E10); a configuration object is the largest.
	maxEventBytes = 1 << 20
	// maxAppendEvents bounds one row. A request with all its attempts is below 600;
	// the column is a smallint.
	maxAppendEvents = 4096
	maxTypeBytes    = 64
)

// Raw is one event undecoded. Its slices are valid until the callback or the next
// step of the iteration returns.
type Raw struct {
	Stream []byte
	Type   []byte
	// TypeVersion is the version of the type's shape.
	TypeVersion int
	// ObservedMicros is microseconds since 1970, 0 if not given.
	ObservedMicros int64
	Data           []byte
	Position       int64
	StreamVersion  int64
	RecordedAt     time.Time
}

// encodeBody renders events, or says why they can never be stored.
func encodeBody(events []Event) (string, error) {
	if len(events) == 0 || len(events) > maxAppendEvents {
		return "", invalid("%d events", len(events))
	}
	size := 0
	for _, e := range events {
		size += len(e.Type) + len(e.Data) + 32
	}
	body := make([]byte, 0, size)
	var err error
	for _, e := range events {
		if body, err = appendLine(body, e); err != nil {
			return "", err
		}
	}
	return string(body), nil
}

func appendLine(dst []byte, e Event) ([]byte, error) {
	if !validType(e.Type) {
		return nil, invalid("event type %.70q", e.Type)
	}
	if e.Version < 1 || e.Version > 32767 {
		return nil, invalid("%s: version %d", e.Type, e.Version)
	}
	if len(e.Data) > maxEventBytes {
		return nil, invalid("%s: %d bytes", e.Type, len(e.Data))
	}
	if !validObject(e.Data) {
		return nil, invalid("%s: data is not one JSON object", e.Type)
	}
	dst = append(dst, e.Type...)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(e.Version), 10)
	dst = append(dst, ' ')
	var micros int64
	if !e.At.IsZero() {
		// UnixMicro of a far year overflows, so the year is what is checked.
		if year := e.At.Year(); year < 1 || year > 9999 {
			return nil, invalid("%s: observed in year %d", e.Type, year)
		}
		micros = e.At.UnixMicro()
	}
	dst = strconv.AppendInt(dst, micros, 10)
	dst = append(dst, ' ')
	if bytes.IndexByte(e.Data, '\n') < 0 {
		dst = append(dst, e.Data...)
		return append(dst, '\n'), nil
	}
	// A raw newline can only be white space between tokens: JSON escapes it in strings.
	var compact bytes.Buffer
	if err := json.Compact(&compact, e.Data); err != nil {
		return nil, invalid("%s: data is not one JSON object", e.Type)
	}
	dst = append(dst, compact.Bytes()...)
	return append(dst, '\n'), nil
}

func validType(name string) bool {
	if name == "" || len(name) > maxTypeBytes || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// validObject also asks for UTF-8: PostgreSQL would refuse the whole batch.
func validObject(data []byte) bool {
	return len(data) >= 2 && data[0] == '{' && json.Valid(data) && utf8.Valid(data)
}

// lines iterates over a body. The last pair carries an error if the body is not
// what appendLine writes.
func lines(body []byte) iter.Seq2[Raw, error] {
	return func(yield func(Raw, error) bool) {
		for len(body) > 0 {
			end := bytes.IndexByte(body, '\n')
			if end < 0 {
				yield(Raw{}, corrupt("a line does not end"))
				return
			}
			raw, err := parseLine(body[:end])
			if !yield(raw, err) || err != nil {
				return
			}
			body = body[end+1:]
		}
	}
}

func parseLine(line []byte) (Raw, error) {
	var raw Raw
	var version, micros []byte
	var ok1, ok2, ok3 bool
	raw.Type, line, ok1 = bytes.Cut(line, space)
	version, line, ok2 = bytes.Cut(line, space)
	micros, raw.Data, ok3 = bytes.Cut(line, space)
	if !ok1 || !ok2 || !ok3 || len(raw.Type) == 0 || len(raw.Data) < 2 || raw.Data[0] != '{' {
		return Raw{}, corrupt("a line is not type version micros {json}")
	}
	v, ok := parseInt(version)
	if !ok || v < 1 || v > 32767 {
		return Raw{}, corrupt("type version %.20q", version)
	}
	raw.TypeVersion = int(v)
	if raw.ObservedMicros, ok = parseInt(micros); !ok {
		return Raw{}, corrupt("observed time %.30q", micros)
	}
	return raw, nil
}

var space = []byte{' '}

// parseInt is strconv.ParseInt without the string: a replay does this twice an event.
func parseInt(digits []byte) (n int64, ok bool) {
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int64(d-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// observed is the inverse of appendLine's: 0 stands for "not given".
func observed(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// maxTextBytes bounds counter keys and the parts of Meta.
const maxTextBytes = 512

// validText is what PostgreSQL takes as text, in one line.
func validText(s string) bool {
	if s == "" || len(s) > maxTextBytes || !utf8.ValidString(s) {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' {
			return false
		}
	}
	return true
}

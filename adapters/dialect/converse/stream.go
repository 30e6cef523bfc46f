package converse

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// readBuffer holds some thirty tokens' frames. A larger frame passes it by.
const readBuffer = 8 << 10

// NewStream reads a provider's stream: Amazon's binary event stream, not SSE. The
// frames' checksums and the bound of their size are the vendor's decoder's.
func (Outbound) NewStream(_ *dialect.Request, body io.Reader) dialect.StreamDecoder {
	d := &streamDecoder{source: source{r: body}}
	d.body = bufio.NewReaderSize(&d.source, readBuffer)
	return d
}

// streamDecoder reads frames and notices when an answer is not one (S4).
type streamDecoder struct {
	source source
	body   *bufio.Reader
	frames eventstream.Decoder
	tally  neutral.Tally
	blocks blocks
	// payload is used again for each frame.
	payload []byte
}

// source keeps the body's own error: the frame decoder reports an end in the middle
// of a frame in several ways.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// Finished reports whether the answer has given its stop reason.
func (d *streamDecoder) Finished() bool { return d.tally.Finished() }

// Tally is what was read so far.
func (d *streamDecoder) Tally() *neutral.Tally { return &d.tally }

// over reports whether there is nothing left to wait for: the dialect has no
// sentinel, and its last two events come in either order.
func (d *streamDecoder) over() bool { return d.Finished() && d.tally.HasUsage }

// lengthBytes are a frame's own length, with which it begins.
const lengthBytes = 4

// Ready reports whether the next frame has already come. One that is larger than the
// buffer never has.
func (d *streamDecoder) Ready() bool {
	if d.over() {
		return true
	}
	buffered := d.body.Buffered()
	if buffered < lengthBytes {
		return false
	}
	head, _ := d.body.Peek(lengthBytes) // in the buffer: it cannot fail
	return int64(buffered) >= int64(binary.BigEndian.Uint32(head))
}

// Next reads the next chunk.
func (d *streamDecoder) Next(c *neutral.Chunk) error {
	if d.over() {
		return d.done()
	}
	if cap(d.payload) > maxScratch {
		d.payload = nil
	}
	frame, err := d.frames.Decode(d.body, d.payload)
	if err != nil {
		return d.end(err)
	}
	if frame.Payload != nil {
		d.payload = frame.Payload[:0]
	}
	name, f := eventName(frame)
	if f == nil {
		f = d.blocks.event(name, frame.Payload)
	}
	if f != nil {
		return f
	}
	*c = neutral.Chunk{Dialect: neutral.Converse, Name: name, Raw: frame.Payload, Events: d.blocks.events}
	d.tally.Add(c)
	return nil
}

// end names the end of the body. A stop reason is enough to be complete: what became
// of the connection after it no longer matters (S14).
func (d *streamDecoder) end(err error) error {
	if d.Finished() {
		return d.done()
	}
	cut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	switch own := d.source.err; {
	case own != nil && !errors.Is(own, io.EOF) && (cut || errors.Is(err, own)):
		return own
	case cut:
		return &failure.Failure{Class: failure.StreamTruncated, Code: "no_terminator", PossiblyBilled: true}
	default:
		// A checksum or a length that is wrong: nothing after it can be trusted.
		return payload("malformed_frame")
	}
}

// done is the end of an answer that its provider calls complete.
func (d *streamDecoder) done() error {
	if empty(&d.tally) {
		return &failure.Failure{Class: failure.EmptyCompletion, Code: "no_output"}
	}
	return io.EOF
}

// eventName is the type of an event. A frame that is an exception or an error is a
// failure (S4).
func eventName(frame eventstream.Message) (string, *failure.Failure) {
	header := func(name string) string {
		if v, ok := frame.Headers.Get(name).(eventstream.StringValue); ok {
			return string(v)
		}
		return ""
	}
	switch header(eventstreamapi.MessageTypeHeader) {
	case eventstreamapi.EventMessageType:
		return header(eventstreamapi.EventTypeHeader), nil
	case eventstreamapi.ExceptionMessageType:
		return "", inStream(header(eventstreamapi.ExceptionTypeHeader), frame.Payload)
	case eventstreamapi.ErrorMessageType:
		return "", inStream(header(eventstreamapi.ErrorCodeHeader), saying(header(eventstreamapi.ErrorMessageHeader)))
	default:
		return "", payload("malformed_frame")
	}
}

// saying is a message as an exception's payload has it.
func saying(message string) []byte {
	return append(append([]byte(`{"message":`), rawjson.Quote(message)...), '}')
}

// open parses an event's payload. Some write it inside a member of the event's own
// name, as the vendor's SDKs show it.
func open(name string, data []byte) (gjson.Result, bool) {
	doc, ok := rawjson.Parse(data)
	if !ok {
		return doc, false
	}
	if inner := rawjson.Member(doc, name); inner.IsObject() {
		return inner, true
	}
	return doc, true
}

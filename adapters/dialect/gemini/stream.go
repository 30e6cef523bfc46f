package gemini

import (
	"errors"
	"io"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/sse"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// NewStream reads a provider's stream.
func (Outbound) NewStream(req *dialect.Request, body io.Reader) dialect.StreamDecoder {
	return &streamDecoder{frames: sse.NewReader(body, 0), reader: newReader(req)}
}

// streamDecoder reads chunks and notices when an answer is not one (S4).
type streamDecoder struct {
	reader
	frames *sse.Reader
	tally  neutral.Tally
}

// Finished reports whether the answer has given its finish reason. There is no other
// terminator.
func (d *streamDecoder) Finished() bool { return d.ended }

// Tally is what was read so far.
func (d *streamDecoder) Tally() *neutral.Tally { return &d.tally }

// Ready reports whether the next chunk has already come.
func (d *streamDecoder) Ready() bool { return d.frames.Ready() }

// Next reads the next chunk.
func (d *streamDecoder) Next(c *neutral.Chunk) error {
	frame, err := d.frames.Next()
	if err != nil {
		return d.end(err)
	}
	if f := d.read(frame.Data); f != nil {
		return f
	}
	*c = neutral.Chunk{Dialect: neutral.Generate, Raw: frame.Data, Events: d.events}
	d.tally.Add(c)
	return nil
}

// end names the end of the body. After a finish reason it is the end of the answer,
// whatever became of the connection (S14).
func (d *streamDecoder) end(err error) error {
	switch stats := d.frames.Stats(); {
	case d.ended && empty(&d.tally):
		return &failure.Failure{Class: failure.EmptyCompletion, Code: "no_output"}
	case d.ended:
		return io.EOF
	case isTooLarge(err):
		return payload("frame_too_large")
	case !errors.Is(err, io.EOF):
		return err
	case stats.Events == 0 && stats.Stray > 0:
		return payload("not_a_stream")
	default:
		return &failure.Failure{Class: failure.StreamTruncated, Code: "no_terminator", PossiblyBilled: true}
	}
}

func isTooLarge(err error) bool {
	_, ok := errors.AsType[*sse.FrameTooLargeError](err)
	return ok
}

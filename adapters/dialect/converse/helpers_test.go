package converse

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/sluice-gateway/sluice/adapters/dialect/dialecttest"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// frame appends one frame as Bedrock sends it.
func frame(t testing.TB, headers map[string]string, payload []byte) []byte {
	t.Helper()
	var m eventstream.Message
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range headers {
			if !yield(name) {
				return
			}
		}
	}) {
		m.Headers.Set(name, eventstream.StringValue(headers[name]))
	}
	m.Payload = payload
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func event(t testing.TB, name, payload string) []byte {
	t.Helper()
	return frame(t, map[string]string{":message-type": "event", ":event-type": name, ":content-type": "application/json"}, []byte(payload))
}

func exceptionFrame(t testing.TB, kind, message string) []byte {
	t.Helper()
	payload, _ := json.Marshal(map[string]string{"message": message})
	return frame(t, map[string]string{":message-type": "exception", ":exception-type": kind, ":content-type": "application/json"}, payload)
}

// line frames a recorded line: its single member is the event's type.
func line(t testing.TB, recorded string) []byte {
	t.Helper()
	var member map[string]json.RawMessage
	if err := json.Unmarshal([]byte(recorded), &member); err != nil || len(member) != 1 {
		t.Fatalf("%v in %s", err, recorded)
	}
	for name, payload := range member {
		return event(t, name, string(payload))
	}
	return nil
}

func stream(t testing.TB, lines ...string) []byte {
	t.Helper()
	var b []byte
	for _, l := range lines {
		b = append(b, line(t, l)...)
	}
	return b
}

// result is a stream after it went through the decoder.
type result struct {
	events []neutral.Event
	tally  neutral.Tally
	answer neutral.Answer
	err    error
}

// read decodes a body to its end, and puts it together (S11).
func read(t testing.TB, body io.Reader) (r result) {
	t.Helper()
	dec, agg := Outbound{}.NewStream(nil, body), Outbound{}.NewAggregate(nil)
	for {
		var c neutral.Chunk
		if r.err = dec.Next(&c); r.err != nil {
			break
		}
		if err := agg.Add(&c); err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Events {
			e.Text = bytes.Clone(e.Text)
			r.events = append(r.events, e)
		}
	}
	r.tally = *dec.Tally()
	if errors.Is(r.err, io.EOF) {
		var err error
		if r.answer, err = agg.Answer(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// recorded are the files of the recorded Converse responses, and our own small ones of
// the same kinds. The recordings are not part of the project: they stand beside a
// checkout, or not.
func recorded(t testing.TB, suffix string) []string {
	t.Helper()
	own, recordings := dialecttest.Fixtures(t, "amazon-bedrock", suffix)
	return append(own, recordings...)
}

func readLines(t testing.TB, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for l := range strings.Lines(string(data)) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

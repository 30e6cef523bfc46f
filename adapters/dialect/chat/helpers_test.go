package chat

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/dialecttest"
	"github.com/sluice-gateway/sluice/adapters/sse"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

const servedAs = "requested/name"

var meta = dialect.Meta{RequestID: "req", Model: servedAs}

func asking(includeUsage bool) *dialect.Request {
	return &dialect.Request{Dialect: neutral.Chat, Choices: 1, Stream: true, IncludeUsage: includeUsage}
}

// frame is payloads as a provider sends them, terminator included.
func frame(payloads ...string) string {
	var b []byte
	for _, p := range payloads {
		b = sse.Append(b, "", []byte(p))
	}
	return string(sse.Append(b, "", []byte("[DONE]")))
}

// result is a stream after it went through decoder and encoder.
type result struct {
	payloads []string
	events   []neutral.Event
	tally    neutral.Tally
	err      error
}

// through decodes a body and encodes what came, as the driver does.
func through(t testing.TB, req *dialect.Request, body io.Reader) result {
	t.Helper()
	dec, enc := Outbound{}.NewStream(req, body), Inbound{}.NewStream(req, meta)
	var out []byte
	var r result
	for {
		var c neutral.Chunk
		if r.err = dec.Next(&c); r.err != nil {
			break
		}
		for _, e := range c.Events {
			e.Text = append([]byte(nil), e.Text...)
			e.Tool.Name = strings.Clone(e.Tool.Name)
			r.events = append(r.events, e)
		}
		var err error
		if out, err = enc.Encode(out, &c); err != nil {
			t.Fatal(err)
		}
	}
	if errors.Is(r.err, io.EOF) {
		out = enc.End(out)
	}
	r.tally = *dec.Tally()
	frames := sse.NewReader(strings.NewReader(string(out)), 0)
	for {
		e, err := frames.Next()
		if err != nil {
			return r
		}
		r.payloads = append(r.payloads, string(e.Data))
	}
}

// recorded are the files of the recorded Chat Completions responses, and our own
// small ones of the same kinds. The recordings are not part of the project: they
// stand beside a checkout, or not.
func recorded(t testing.TB, suffix string) []string {
	t.Helper()
	own, recordings := dialecttest.Fixtures(t, "*", suffix)
	for _, file := range recordings {
		if data, err := os.ReadFile(file); err == nil && isChat(string(data)) {
			own = append(own, file)
		}
	}
	return own
}

// isChat tells Chat Completions from the other dialects of the recordings.
func isChat(data string) bool {
	first, _, _ := strings.Cut(data, "\n")
	if strings.HasSuffix(strings.TrimSpace(first), "}") {
		data = first
	}
	var v struct{ Choices []any }
	return json.Unmarshal([]byte(data), &v) == nil && v.Choices != nil
}

func readLines(t testing.TB, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

package messages

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

var meta = dialect.Meta{RequestID: "req", Model: servedAs, InputTokens: 345}

func asking() *dialect.Request {
	return &dialect.Request{Dialect: neutral.Messages, Choices: 1, Stream: true, IncludeUsage: true}
}

// asked is a caller of another dialect.
func asked() *dialect.Request {
	return &dialect.Request{Dialect: neutral.Chat, Choices: 1, Stream: true}
}

func typeOf(payload string) string {
	var v struct{ Type string }
	_ = json.Unmarshal([]byte(payload), &v)
	return v.Type
}

// frame is payloads as a provider sends them.
func frame(payloads ...string) string {
	var b []byte
	for _, p := range payloads {
		b = sse.Append(b, typeOf(p), []byte(p))
	}
	return string(b)
}

type sent struct{ Name, Data string }

// result is a stream after it went through decoder and encoder.
type result struct {
	sent   []sent
	events []neutral.Event
	tally  neutral.Tally
	err    error
}

// foreign makes chunks look as if they came from another dialect, so that they are
// written from their events.
func through(t testing.TB, body io.Reader, foreign bool) result {
	t.Helper()
	dec, enc := Outbound{}.NewStream(asking(), body), Inbound{}.NewStream(asking(), meta)
	var out []byte
	var r result
	for {
		var c neutral.Chunk
		if r.err = dec.Next(&c); r.err != nil {
			break
		}
		for _, e := range c.Events {
			e.Text = append([]byte(nil), e.Text...)
			e.Tool = neutral.Tool{ID: strings.Clone(e.Tool.ID), Name: strings.Clone(e.Tool.Name)}
			r.events = append(r.events, e)
		}
		if foreign {
			c.Dialect = neutral.Converse
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
	r.sent = readSent(out)
	return r
}

func readSent(out []byte) (all []sent) {
	frames := sse.NewReader(strings.NewReader(string(out)), 0)
	for {
		e, err := frames.Next()
		if err != nil {
			return all
		}
		all = append(all, sent{string(e.Name), string(e.Data)})
	}
}

// recorded are the files of the recorded Messages responses, and our own small ones
// of the same kinds. The recordings are not part of the project: they stand beside a
// checkout, or not.
func recorded(t testing.TB, suffix string) []string {
	t.Helper()
	own, recordings := dialecttest.Fixtures(t, "anthropic", suffix)
	return append(own, recordings...)
}

// replies are the streams of a file: some recordings hold a whole conversation, one
// reply after the other.
func replies(t testing.TB, file string) (all [][]string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		lines = append(lines, line)
		if typeOf(line) == "message_stop" {
			all, lines = append(all, lines), nil
		}
	}
	if lines != nil {
		t.Fatalf("%s does not end in message_stop", file)
	}
	return all
}

package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/dialecttest"
	"github.com/sluice-gateway/sluice/adapters/sse"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

const servedAs = "requested/name"

// meta has a request id that was made at a known second.
var meta = dialect.Meta{RequestID: "019acf48-4c00-7000-8000-000000000001", Model: servedAs}

const madeAt = 1764414213 // what the first 48 bits of that id say, in seconds

func asking() *dialect.Request {
	return &dialect.Request{Dialect: neutral.Responses, Raw: []byte(`{"model":"requested/name","input":"hi","stream":true}`), Choices: 1, Stream: true}
}

// fromElsewhere is a request in another dialect.
func fromElsewhere() *dialect.Request {
	return &dialect.Request{Dialect: neutral.Messages, Choices: 1, Stream: true}
}

// framed is payloads as a provider sends them.
func framed(payloads ...string) string {
	var b []byte
	for _, p := range payloads {
		var v struct{ Type string }
		_ = json.Unmarshal([]byte(p), &v)
		b = sse.Append(b, v.Type, []byte(p))
	}
	return string(b)
}

// result is a stream after it went through decoder and encoder.
type result struct {
	names    []string
	payloads []string
	events   []neutral.Event
	tally    neutral.Tally
	err      error
	sent     string
}

// through decodes a body and encodes what came, as the driver does.
func through(t testing.TB, req *dialect.Request, body io.Reader) result {
	t.Helper()
	dec, enc := Outbound{}.NewStream(req, body), Inbound{}.NewStream(asking(), meta)
	var out []byte
	var r result
	for {
		var c neutral.Chunk
		if r.err = dec.Next(&c); r.err != nil {
			break
		}
		r.events = append(r.events, kept(c.Events)...)
		var err error
		if out, err = enc.Encode(out, &c); err != nil {
			t.Fatal(err)
		}
	}
	if errors.Is(r.err, io.EOF) {
		out = enc.End(out)
	}
	r.tally = *dec.Tally()
	r.read(t, out)
	return r
}

func (r *result) read(t testing.TB, out []byte) {
	t.Helper()
	r.sent = string(out)
	frames := sse.NewReader(strings.NewReader(r.sent), 0)
	for {
		e, err := frames.Next()
		if err != nil {
			return
		}
		r.names, r.payloads = append(r.names, string(e.Name)), append(r.payloads, string(e.Data))
	}
}

// kept are events beyond their frame.
func kept(events []neutral.Event) []neutral.Event {
	var out []neutral.Event
	for _, e := range events {
		e.Text = append([]byte(nil), e.Text...)
		out = append(out, e)
	}
	return out
}

// joined are the texts of events by kind, calls apart.
func joined(events []neutral.Event) map[string]string {
	by := map[string]string{}
	for _, e := range events {
		switch e.Kind {
		case neutral.Text, neutral.Reasoning, neutral.Refusal:
			by[e.Kind.String()] += string(e.Text)
		case neutral.ToolCallStart:
			by[fmt.Sprint("call ", e.Index)] += e.Tool.ID + " " + e.Tool.Name + " "
		case neutral.ToolCallDelta:
			by[fmt.Sprint("call ", e.Index)] += string(e.Text)
		case neutral.ReasoningSeal:
			by["seal"] += encryptedContent(e.Seal) + "\n"
		}
	}
	return by
}

// recording is one recorded response.
type recording struct {
	name  string
	lines []string
}

// recorded are the recorded Responses streams, and our own small ones of the same
// kinds. The recordings are not part of the project: they stand beside a checkout, or
// not. A file may have several turns one after the other.
func recorded(t testing.TB) []recording {
	t.Helper()
	var all []recording
	for _, file := range files(t, ".chunks.txt") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(string(data), "\n"); !json.Valid([]byte(first)) {
			// One of the recordings was written by hand and lacks a brace.
			t.Logf("%s is not JSON", file)
			continue
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if strings.Contains(line, `"type":"response.created"`) {
				all = append(all, recording{name: fmt.Sprintf("%s-%d", filepath.Base(file), len(all))})
			}
			if line != "" && len(all) > 0 {
				all[len(all)-1].lines = append(all[len(all)-1].lines, line)
			}
		}
	}
	return all
}

// wholes are the recorded whole responses.
func wholes(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, file := range files(t, ".json") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = string(data)
	}
	return all
}

func files(t testing.TB, suffix string) []string {
	t.Helper()
	own, others := dialecttest.Fixtures(t, "*", suffix)
	for _, file := range others {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(string(data), "\n")
		var whole struct{ Object string }
		stream := strings.Contains(first, `"type":"response.created"`)
		if stream || (json.Unmarshal(data, &whole) == nil && whole.Object == "response") {
			own = append(own, file)
		}
	}
	return own
}

func refusal(status int, body string) dialect.Refusal {
	return dialect.Refusal{Status: status, Body: []byte(body)}
}

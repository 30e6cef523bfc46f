package gemini

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/sse"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata/golden.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

const geminiBase = "https://generativelanguage.googleapis.com"

// foreign is a request of a caller who speaks another dialect, as all do.
func foreign(n *neutral.Request) *dialect.Request {
	return &dialect.Request{
		Dialect: neutral.Chat, Raw: []byte(`{"model":"m"}`), Choices: 1, Stream: n.Stream,
		Neutral: func() (*neutral.Request, error) { return n, nil },
	}
}

func build(t testing.TB, n *neutral.Request, model string) string {
	t.Helper()
	up, err := Outbound{}.Build(foreign(n), dialect.Target{BaseURL: geminiBase, Secret: "k", UpstreamModel: model, Stream: n.Stream})
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(up.Body) {
		t.Fatalf("no JSON: %s", up.Body)
	}
	return string(up.Body)
}

func said(s string) neutral.Part { return neutral.Part{Kind: neutral.TextPart, Text: s} }

func called(id, name, arguments string) neutral.Part {
	return neutral.Part{Kind: neutral.ToolCallPart, Call: neutral.ToolCall{ID: id, Name: name, Arguments: arguments}}
}

func answered(id, name string, parts ...neutral.Part) neutral.Part {
	return neutral.Part{Kind: neutral.ToolResultPart, Result: neutral.ToolResult{CallID: id, Name: name, Parts: parts}}
}

func picture(data string) neutral.Part {
	return neutral.Part{Kind: neutral.ImagePart, Media: neutral.Media{Type: "image/png", Base64: data}}
}

func sealed(id, signature string) neutral.Part {
	return neutral.Part{Kind: neutral.ReasoningPart, Opaque: neutral.OpaqueReasoning{Issuer: neutral.Generate, ID: id, Signature: signature}}
}

func user(parts ...neutral.Part) neutral.Message {
	return neutral.Message{Role: neutral.User, Parts: parts}
}

func assistant(parts ...neutral.Part) neutral.Message {
	return neutral.Message{Role: neutral.Assistant, Parts: parts}
}

// frame is payloads as Google sends them: there is no terminator.
func frame(payloads ...string) string {
	var b []byte
	for _, p := range payloads {
		b = sse.Append(b, "", []byte(p))
	}
	return string(b)
}

// heard is a stream after it was decoded.
type heard struct {
	events []neutral.Event
	tally  neutral.Tally
	answer neutral.Answer
	err    error
}

func decode(t testing.TB, body io.Reader) (h heard) {
	t.Helper()
	dec, agg := Outbound{}.NewStream(foreign(&neutral.Request{}), body), Outbound{}.NewAggregate(nil)
	for {
		var c neutral.Chunk
		if h.err = dec.Next(&c); h.err != nil {
			break
		}
		for _, e := range c.Events {
			e.Text = append([]byte(nil), e.Text...)
			e.Tool.Name = strings.Clone(e.Tool.Name)
			h.events = append(h.events, e)
		}
		if err := agg.Add(&c); err != nil {
			t.Fatal(err)
		}
	}
	h.tally = *dec.Tally()
	h.answer, _ = agg.Answer()
	return h
}

// ended checks that a stream ended as it should.
func (h heard) ended(t testing.TB) heard {
	t.Helper()
	if !errors.Is(h.err, io.EOF) {
		t.Fatalf("ended with %v", h.err)
	}
	return h
}

// failed checks what a stream failed of.
func (h heard) failed(t testing.TB, class failure.Class, code string) {
	t.Helper()
	f, ok := errors.AsType[*failure.Failure](h.err)
	if !ok || f.Class != class || f.Code != code {
		t.Errorf("ended with %v, want %s: %s", h.err, class, code)
	}
}

// recordedFiles are our own small recordings and, where they stand beside a checkout,
// the large ones.
func recordedFiles(t testing.TB, suffix string) []string {
	t.Helper()
	own, err := filepath.Glob("testdata/*" + suffix)
	if err != nil || len(own) == 0 {
		t.Fatalf("no own fixtures %s: %v", suffix, err)
	}
	files, _ := filepath.Glob("../../../../shared/fixtures/provider-streams/google/*" + suffix)
	if len(files) == 0 {
		t.Log("only our own fixtures: the recorded responses are not at ../shared beside the checkout")
	}
	for _, file := range files {
		if !strings.Contains(file, "429") {
			own = append(own, file)
		}
	}
	return own
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

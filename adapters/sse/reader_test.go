package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type event struct{ Name, Data string }

// read reads a whole stream and the error that ended it.
func read(src io.Reader, maxFrame int) ([]event, error) {
	r := NewReader(src, maxFrame)
	var events []event
	for {
		e, err := r.Next()
		if err != nil {
			return events, err
		}
		events = append(events, event{string(e.Name), string(e.Data)})
	}
}

// Rules: S12.
func TestReaderFraming_S12(t *testing.T) {
	tests := []struct {
		name, in string
		want     []event
	}{
		{"LF", "data: a\n\ndata: b\n\n", []event{{"", "a"}, {"", "b"}}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []event{{"", "a"}, {"", "b"}}},
		{"bare CR", "data: a\r\rdata: b\r\r", []event{{"", "a"}, {"", "b"}}},
		{"mixed endings", "data: a\r\n\ndata: b\n\rdata: c\r\r\n", []event{{"", "a"}, {"", "b"}, {"", "c"}}},
		{"no space", "data:{\"a\":1}\n\n", []event{{"", `{"a":1}`}}},
		{"only one space goes", "data:  a\n\n", []event{{"", " a"}}},
		{"multi-line data", "data: a\ndata: b\ndata: c\n\n", []event{{"", "a\nb\nc"}}},
		{"empty data is an event", "data:\n\n", []event{{"", ""}}},
		{"data without a colon", "data\n\n", []event{{"", ""}}},
		{"name", "event: error\ndata: a\n\ndata: b\n\n", []event{{"error", "a"}, {"", "b"}}},
		{"a name without data does not stick", "event: error\n\ndata: b\n\n", []event{{"", "b"}}},
		{"the last name counts", "event: a\nevent: b\ndata: x\n\n", []event{{"b", "x"}}},
		{"comments", ": hi\n\n: OPENROUTER PROCESSING\n\ndata: a\n:in between\ndata: b\n\n:\n", []event{{"", "a\nb"}}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []event{{"", "a"}}},
		{"a mark inside is data", "data: \xef\xbb\xbfa\n\n", []event{{"", "\xef\xbb\xbfa"}}},
		{"no blank line, no event", "data: a\n\ndata: b\n", []event{{"", "a"}}},
		{"a line cut off is no event", "data: a\n\ndata: b", []event{{"", "a"}}},
		{"id, retry and unknown fields", "id: 1\nretry: 2\nfoo: 3\ndata: a\n\n", []event{{"", "a"}}},
		{"nothing", "", nil},
		{"blank lines", "\n\n\r\n\r", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(strings.NewReader(tt.in), 0)
			if !errors.Is(err, io.EOF) {
				t.Fatalf("error = %v, want io.EOF", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			slow, _ := read(iotest.OneByteReader(strings.NewReader(tt.in)), 0)
			if diff := cmp.Diff(tt.want, slow); diff != "" {
				t.Errorf("one byte a read: %s", diff)
			}
		})
	}
}

// Rules: W11.
func TestReaderCountsCommentsAsBytesNotEvents_W11(t *testing.T) {
	in := ": a\n\n: b\n\ndata: x\n\n<html>\n"
	r := NewReader(strings.NewReader(in), 0)
	for {
		if _, err := r.Next(); err != nil {
			break
		}
	}
	want := Stats{Bytes: int64(len(in)), Events: 1, Comments: 2, Stray: 1}
	if got := r.Stats(); got != want {
		t.Errorf("stats = %+v, want %+v", got, want)
	}
}

// Rules: S12.
func TestReaderTakesLargeFrames_S12(t *testing.T) {
	for _, size := range []int{64 << 10, 100 << 10, 1 << 20, 16<<20 - len("data: ")} {
		data := strings.Repeat("x", size)
		in := "data: a\n\ndata: " + data + "\n\ndata: b\n\n"
		got, err := read(strings.NewReader(in), 0)
		if !errors.Is(err, io.EOF) {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if len(got) != 3 || got[1].Data != data || got[2].Data != "b" {
			t.Errorf("%d bytes: not read whole", size)
		}
	}
}

// Rules: S12.
func TestReaderRefusesFramesAboveTheLimit_S12(t *testing.T) {
	tests := map[string]string{
		"one line":             "data: " + strings.Repeat("x", 200) + "\n\n",
		"one line without end": "data: " + strings.Repeat("x", 200),
		"many lines":           strings.Repeat("data: xxxx\n", 20) + "\n",
		"a comment":            ": " + strings.Repeat("x", 200) + "\n\n",
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			for _, src := range []io.Reader{strings.NewReader("data: ok\n\n" + in), iotest.OneByteReader(strings.NewReader("data: ok\n\n" + in))} {
				got, err := read(src, 100)
				tooLarge, ok := errors.AsType[*FrameTooLargeError](err)
				if !ok || tooLarge.Limit != 100 {
					t.Fatalf("error = %v, want a FrameTooLargeError of 100", err)
				}
				if len(got) != 1 {
					t.Errorf("read %d events before it, want 1", len(got))
				}
			}
		})
	}
}

// A reader that kept the buffer of its largest frame would hold 16 MiB for each
// open stream that ever carried an image (S9).
func TestReaderGivesMemoryBack_S9(t *testing.T) {
	in := "data: " + strings.Repeat("x", 4<<20) + "\n\n" +
		"data: " + strings.Repeat("y", 2<<20) + "\ndata: y\n\ndata: a\n\ndata: b\n\n"
	r := NewReader(strings.NewReader(in), 0)
	for range 4 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.buf) > keepBuffer || cap(r.event.joined) > keepBuffer {
		t.Errorf("keeps %d and %d bytes, want at most %d", len(r.buf), cap(r.event.joined), keepBuffer)
	}
}

// Ready must never promise an event for which Next would have to wait, nor lose one
// by looking.
func TestReadyIsWhatNextHasWithoutReading(t *testing.T) {
	reads := 0
	r := NewReader(readerFunc(func(p []byte) (int, error) {
		parts := []string{"data: a\n\nevent: b\nda", "ta: b\n\n: only a comment\n\nevent: c\n\n"}
		if reads == len(parts) {
			return 0, io.EOF
		}
		reads++
		return copy(p, parts[reads-1]), nil
	}), 0)
	for _, step := range []struct {
		ready bool
		data  string
		reads int
	}{{false, "a", 1}, {false, "b", 2}} {
		if got := r.Ready(); got != step.ready {
			t.Fatalf("before %q: Ready is %v", step.data, got)
		}
		e, err := r.Next()
		if err != nil || string(e.Data) != step.data || reads != step.reads {
			t.Fatalf("Next: %q, %v after %d reads, want %q after %d", e.Data, err, reads, step.data, step.reads)
		}
	}
	if r.Ready() {
		t.Error("a comment and a name without data passed for an event")
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) || r.Ready() {
		t.Errorf("the end: %v", err)
	}
	r = NewReader(strings.NewReader("data: a\n\ndata: b\n\n"), 0)
	if _, err := r.Next(); err != nil || !r.Ready() || !r.Ready() {
		t.Fatal("the second event was read with the first")
	}
	if e, err := r.Next(); err != nil || string(e.Data) != "b" {
		t.Fatalf("Next after Ready: %q, %v", e.Data, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestReaderReturnsTheSourcesError(t *testing.T) {
	boom := errors.New("boom")
	got, err := read(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(boom)), 0)
	if !errors.Is(err, boom) || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	got, err = read(iotest.DataErrReader(strings.NewReader("data: a\n\n")), 0)
	if !errors.Is(err, io.EOF) || len(got) != 1 {
		t.Errorf("data with EOF: got %v, %v", got, err)
	}
}

// chunks is a reader that returns the stream in given pieces.
type chunks [][]byte

func (c *chunks) Read(p []byte) (int, error) {
	if len(*c) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*c)[0])
	if (*c)[0] = (*c)[0][n:]; len((*c)[0]) == 0 {
		*c = (*c)[1:]
	}
	return n, nil
}

// checkSplits compares the reading of a stream as one piece with that of every
// split in two.
func checkSplits(t interface {
	Helper()
	Fatalf(string, ...any)
}, in []byte, maxFrame int,
) {
	t.Helper()
	want, wantErr := read(bytes.NewReader(in), maxFrame)
	for i := 0; i <= len(in); i++ {
		got, err := read(&chunks{in[:i:i], in[i:]}, maxFrame)
		if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("split at %d: %v, want %v\n%s", i, err, wantErr, diff)
		}
	}
}

// Rules: S12.
func TestReaderSplitAnywhere_S12(t *testing.T) {
	checkSplits(t, []byte("\xef\xbb\xbf: c\r\n\r\nevent: e\r\ndata: 漢字 🦥\r\ndata:b\r\rdata: {\"é\":1}\n\n"), 0)
}

// Rules: S12.
func TestReaderIsTheInverseOfAppend_S12(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.Custom(func(t *rapid.T) event {
			return event{
				rapid.StringMatching(`[a-z._]{0,12}`).Draw(t, "name"),
				strings.ReplaceAll(rapid.String().Draw(t, "data"), "\r", "\n"),
			}
		})).Draw(t, "events")
		var stream []byte
		for _, e := range want {
			stream = Append(stream, e.Name, []byte(e.Data))
			if rapid.Bool().Draw(t, "comment") {
				stream = append(stream, Comment...)
			}
		}
		switch rapid.IntRange(0, 2).Draw(t, "endings") {
		case 1:
			stream = bytes.ReplaceAll(stream, []byte("\n"), []byte("\r\n"))
		case 2:
			stream = bytes.ReplaceAll(stream, []byte("\n"), []byte("\r"))
		}
		var pieces chunks
		for rest := stream; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			pieces, rest = append(pieces, rest[:n:n]), rest[n:]
		}
		got, err := read(&pieces, 0)
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if len(want) == 0 {
			want = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzReaderSplit(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\n: c\rdata: b\r\revent: x\ndata\n\n"))
	f.Add([]byte("\xef\xbb\xbfdata: \xf0\x9f\xa6\xa5\n\n"))
	f.Add([]byte("data: a\ndata: b\n\ndata: 0123456789012345678901234567890123456789\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 512 {
			return
		}
		checkSplits(t, in, 0)
		checkSplits(t, in, 24)
	})
}

func stream(b *testing.B) []byte {
	b.Helper()
	frame := `{"id":"chatcmpl-D8Z5oo6uDh67AD85p73ksdT1KxhE0","object":"chat.completion.chunk","created":1770933892,"model":"gpt-4.1-nano-2025-04-14","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null}`
	return bytes.Repeat([]byte("data: "+frame+"\n\n"), 4096)
}

func BenchmarkReader(b *testing.B) {
	in := stream(b)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(in), 0)
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
	}
}

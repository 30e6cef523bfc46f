package gemini

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// BenchmarkChunk is one chunk of each kind through this decoder and the encoder of the
// usual caller's dialect.
func BenchmarkChunk(b *testing.B) {
	text := chunk(`{"content":{"parts":[{"text":"` + strings.Repeat("some words and more ", 20) + `"}],"role":"model"},"index":0}`)
	for _, bb := range []struct{ name, payload string }{
		{"text", readLines(b, "testdata/text.chunks.txt")[1]},
		{"long", text},
		{"tool", readLines(b, "testdata/tools.chunks.txt")[0]},
	} {
		b.Run(bb.name, func(b *testing.B) {
			one := frame(bb.payload)
			req := &dialect.Request{Dialect: neutral.Chat, Choices: 1, IncludeUsage: true}
			enc := chat.Inbound{}.NewStream(req, dialect.Meta{RequestID: "r", Model: "m"})
			dec := Outbound{}.NewStream(req, &repeat{piece: one}).(*streamDecoder)
			var c neutral.Chunk
			var out []byte
			b.SetBytes(int64(len(one)))
			b.ReportAllocs()
			for b.Loop() {
				dec.calls = 0
				if err := dec.Next(&c); err != nil {
					b.Fatal(err)
				}
				var err error
				if out, err = enc.Encode(out[:0], &c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// repeat is an endless stream of one event.
type repeat struct{ piece, rest string }

func (r *repeat) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if r.rest == "" {
			r.rest = r.piece
		}
		m := copy(p[n:], r.rest)
		r.rest = r.rest[m:]
		n += m
	}
	return n, nil
}

func BenchmarkBuild(b *testing.B) {
	n := everything()
	for range 200 {
		n.Messages = append(n.Messages, user(said(strings.Repeat("some words and a line break\n", 20))), assistant(said("yes")))
	}
	target := dialect.Target{UpstreamModel: "gemini-2.5-pro"}
	body, err := write(n, target, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := write(n, target, len(body)); err != nil {
			b.Fatal(err)
		}
	}
}

// A picture of 16 MiB is copied once.
func BenchmarkBuildImage(b *testing.B) {
	data := strings.Repeat("AAAA", 4<<20)
	n := &neutral.Request{Messages: []neutral.Message{user(picture(data))}}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := write(n, dialect.Target{UpstreamModel: "m"}, len(data)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSchema(b *testing.B) {
	in := json.RawMessage(`{"type":"object","properties":{` + strings.Repeat(`"a":{"type":"string","description":"what it is"},`, 50) + `"z":{"$ref":"#/$defs/z"}},"$defs":{"z":{"type":"string"}}}`)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		w := writer{}
		w.schema(in, "tools[0]", false)
	}
}

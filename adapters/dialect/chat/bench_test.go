package chat

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/domain/neutral"
)

// BenchmarkChunk is one chunk of each kind through decoder and encoder: the whole
// cost of a token inside the gateway but for the sockets.
func BenchmarkChunk(b *testing.B) {
	for _, bb := range []struct{ name, payload string }{
		{"text", readLines(b, "testdata/text.chunks.txt")[0]},
		{"escaped", readLines(b, "testdata/text.chunks.txt")[1]},
		{"tool", readLines(b, "testdata/reasoning-tools.chunks.txt")[3]},
	} {
		b.Run(bb.name, func(b *testing.B) {
			one := frame(bb.payload)
			one = strings.TrimSuffix(one, "data: [DONE]\n\n")
			body := &repeat{piece: []byte(one)}
			dec, enc := Outbound{}.NewStream(asking(false), body), Inbound{}.NewStream(asking(false), meta)
			var c neutral.Chunk
			var out []byte
			b.SetBytes(int64(len(one)))
			b.ReportAllocs()
			for b.Loop() {
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
type repeat struct{ piece, rest []byte }

func (r *repeat) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(r.rest) == 0 {
			r.rest = r.piece
		}
		m := copy(p[n:], r.rest)
		r.rest = r.rest[m:]
		n += m
	}
	return n, nil
}

func BenchmarkParse(b *testing.B) {
	body := []byte(`{"model":"m","stream":true,"messages":[` + strings.Repeat(`{"role":"user","content":"some words and a line break\n"},`, 1000) + `{"role":"user","content":"x"}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Inbound{}).Parse(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWhole(b *testing.B) {
	body := bytes.Replace([]byte(readLines(b, "testdata/text.json")[0]), []byte("Hello"), bytes.Repeat([]byte("some words "), 400), 1)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		answer, f := Outbound{}.DecodeWhole(asking(false), body)
		if f != nil {
			b.Fatal(f)
		}
		if _, err := (Inbound{}).Whole(asking(false), &answer, meta); err != nil {
			b.Fatal(err)
		}
	}
}

package responses

import (
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// BenchmarkEvent is one event of each kind through decoder and encoder: the whole
// cost of a token inside the gateway but for the sockets.
func BenchmarkEvent(b *testing.B) {
	of := func(name string, at int) string {
		for _, r := range recorded(b) {
			if strings.HasPrefix(r.name, name) {
				return r.lines[at]
			}
		}
		b.Fatalf("no recording %s", name)
		return ""
	}
	for _, bb := range []struct{ name, payload string }{
		{"text", of("text.chunks", 3)}, {"escaped", of("text.chunks", 4)}, {"created", of("text.chunks", 0)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			one := framed(bb.payload)
			dec, enc := Outbound{}.NewStream(asking(), &repeat{piece: []byte(one)}), Inbound{}.NewStream(asking(), meta)
			pump(b, len(one), dec, enc)
		})
	}
}

func pump(b *testing.B, size int, dec dialect.StreamDecoder, enc dialect.StreamEncoder) {
	b.Helper()
	var c neutral.Chunk
	var out []byte
	b.SetBytes(int64(size))
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
}

// BenchmarkRecorded is whole recorded streams: the sum of what real ones are made of.
func BenchmarkRecorded(b *testing.B) {
	var bodies []string
	size := 0
	for _, r := range recorded(b) {
		if r.ends() {
			bodies = append(bodies, framed(r.lines...))
			size += len(bodies[len(bodies)-1])
		}
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var out []byte
	for b.Loop() {
		for _, body := range bodies {
			dec, enc := Outbound{}.NewStream(asking(), strings.NewReader(body)), Inbound{}.NewStream(asking(), meta)
			out = out[:0]
			for {
				var c neutral.Chunk
				if dec.Next(&c) != nil {
					break
				}
				out, _ = enc.Encode(out, &c)
			}
		}
	}
}

// BenchmarkFromChat is a token of another dialect as this one writes it.
func BenchmarkFromChat(b *testing.B) {
	one := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	dec := chat.Outbound{}.NewStream(asking(), &repeat{piece: []byte(one)})
	var c neutral.Chunk
	var out []byte
	b.SetBytes(int64(len(one)))
	b.ReportAllocs()
	enc := Inbound{}.NewStream(asking(), meta)
	for n := 0; b.Loop(); n++ {
		if n%4096 == 0 {
			// An answer of a usual length: its end repeats it.
			enc = Inbound{}.NewStream(asking(), meta)
		}
		if err := dec.Next(&c); err != nil {
			b.Fatal(err)
		}
		var err error
		if out, err = enc.Encode(out[:0], &c); err != nil {
			b.Fatal(err)
		}
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
	body := []byte(`{"model":"m","stream":true,"input":[` + strings.Repeat(`{"role":"user","content":"some words and a line break\n"},`, 1000) + `{"role":"user","content":"x"}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Inbound{}).Parse(body); err != nil {
			b.Fatal(err)
		}
	}
}

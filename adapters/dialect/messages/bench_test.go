package messages

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// BenchmarkStream is a whole answer through decoder and encoder: passed on, and
// written anew from its events.
func BenchmarkStream(b *testing.B) {
	lines := replies(b, "testdata/text.chunks.txt")[0]
	var long []string
	long = append(long, lines[:3]...)
	for range 500 {
		long = append(long, lines[3], lines[4])
	}
	body := frame(append(long, lines[5:]...)...)
	for name, from := range map[string]neutral.Dialect{"same": neutral.Messages, "cross": neutral.Converse} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			var out []byte
			for b.Loop() {
				dec, enc := Outbound{}.NewStream(asking(), strings.NewReader(body)), Inbound{}.NewStream(asking(), meta)
				out = out[:0]
				var c neutral.Chunk
				for dec.Next(&c) == nil {
					c.Dialect = from
					var err error
					if out, err = enc.Encode(out, &c); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	body := []byte(`{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"some words and a line break\n"},`, 1000) + `{"role":"user","content":"x"}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Inbound{}).Parse(body); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkImage is a 16 MiB image on its way to a provider: passed on, and written
// anew.
func BenchmarkImage(b *testing.B) {
	image := bytes.Repeat([]byte("QUJD"), 4<<20)
	body := append([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`), image...)
	body = append(body, `"}}]}]}`...)
	for name, from := range map[string]neutral.Dialect{"same": neutral.Messages, "cross": neutral.Chat} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				req, err := Inbound{}.Parse(body)
				if err != nil {
					b.Fatal(err)
				}
				req.Dialect = from
				if _, err := (Outbound{}).Build(req, dialect.Target{BaseURL: "https://p.test", UpstreamModel: "up"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

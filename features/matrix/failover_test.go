package matrix

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
)

// TestFailoverAcrossDialects_W14_P3 lets the first route of a chain be down and another,
// of any dialect, answer: the caller hears nothing of the first, and the second is asked
// what it would have been asked alone.
//
// Rules: W14, P3.
func TestFailoverAcrossDialects_W14_P3(t *testing.T) {
	w := newWorld(t)
	request := func(from inbound, model string) string {
		return fmt.Sprintf(`{"model":%q,%q:2000,"stream":true,`, model, from.limit) + using("get_weather", "get_time")[from.dialect] + "}"
	}
	for _, from := range inbounds {
		for _, second := range outbounds {
			w.t = t
			alone := w.send(from, request(from, modelOf(second, talkAndCall)))
			for _, first := range outbounds {
				t.Run(from.name+" over "+first.name+" to "+second.name, func(t *testing.T) {
					w.t = t
					x := w.send(from, request(from, failoverOf(first, second)))
					got := from.readStream(x.body)
					c := cell{from: from, to: second, stream: true, exchange: x, reply: got}
					if missing := cmp.Or(absent(got.text, "let me look"), c.callsMissing(2)); x.status != 200 || got.err != nil || missing != "" {
						t.Fatalf("missing %s, %v\n%s", missing, got.err, x)
					}
					if x.header.Get("X-Sluice-Attempts") == "1" || x.header.Get("X-Sluice-Provider") != second.name {
						t.Errorf("attempts %s, served by %s", x.header.Get("X-Sluice-Attempts"), x.header.Get("X-Sluice-Provider"))
					}
					if x.asked != alone.asked || strings.Contains(x.asked, down) {
						t.Errorf("asked after a failure:\n%s\nasked alone:\n%s", x.asked, alone.asked)
					}
				})
			}
		}
	}
}

package matrix

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/registry"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

var update = flag.Bool("update", false, "write docs/matrix.md again")

func TestMain(m *testing.M) {
	// fasthttp's clock and the cleaner of an ended server's pool sleep on.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// outcome is what is promised of a cell, and proved by its run.
type outcome struct {
	kind kind
	// row is the row of the table of what is dropped, or the feature that is lacking.
	row string
}

type kind string

// The kinds of outcomes. Moved arrives, in another place or form than it was sent, as
// a row of the table says.
const (
	isProven   kind = "proven"
	isMoved    kind = "moved"
	isDropped  kind = "dropped"
	isSkipped  kind = "skipped"
	isUntested kind = "untested"
)

var proven = outcome{kind: isProven}

func moved(row string) outcome    { return outcome{isMoved, row} }
func dropped(row string) outcome  { return outcome{isDropped, row} }
func skipped(what string) outcome { return outcome{isSkipped, what} }

// TestMatrix_P3_P5_P10 runs every cell. What a cell promises and what it does have to
// agree: a drop that nobody documented fails, and so does a documented one that
// arrives after all.
//
// Rules: P3, P5, P10.
func TestMatrix_P3_P5_P10(t *testing.T) {
	w := newWorld(t)
	results := map[string]outcome{}
	for _, c := range capabilities {
		for _, from := range inbounds {
			for _, to := range outbounds {
				want := promised(c, from, to)
				results[key(c, from, to)] = want
				t.Run(c.name+"/"+from.name+" to "+to.name, func(t *testing.T) {
					if want.kind == isUntested {
						t.Skip(want.row)
					}
					w := w
					if w.t = t; c.again {
						// The scripted provider seals everything alike: a gateway that remembers who
						// sealed what would take another cell's seal for this one's (K4).
						w = newWorld(t)
					}
					for _, stream := range []bool{false, true} {
						if stream && c.streams || !stream && c.wholes {
							w.prove(t, c, from, to, stream, want)
						}
					}
				})
			}
		}
	}
	page := render(results)
	if testing.Verbose() {
		fmt.Println(page)
	}
	compare(t, page)
}

func key(c capability, from inbound, to outbound) string {
	return c.name + "/" + from.name + "/" + to.name
}

// promised is a cell's promise. A protocol that no worker speaks yet has none.
func promised(c capability, from inbound, to outbound) outcome {
	if _, ok := registry.Outbound()[to.protocol]; !ok || to.untested != "" {
		return outcome{isUntested, cmp.Or(to.untested, "no worker speaks it yet")}
	}
	if c.want == nil {
		return proven
	}
	return c.want(from, to)
}

func (w *world) prove(t *testing.T, c capability, from inbound, to outbound, stream bool, want outcome) {
	t.Helper()
	x := w.send(from, body(c, from, to, stream))
	if want.kind == isSkipped {
		code := gjson.GetBytes(x.body, "error.code").Str
		if x.status != 400 || code != "capability_unavailable" || x.calls != 0 {
			t.Errorf("want a refusal before any call, for %s: %s", want.row, x)
		}
		return
	}
	if c.again {
		if x.status != 200 {
			t.Fatalf("first turn: %s", x)
		}
		x = w.send(from, from.next(body(c, from, to, stream), x.body))
	}
	got := cell{from: from, to: to, stream: stream, exchange: x}
	switch {
	case x.status == 200 && stream:
		got.reply = from.readStream(x.body)
	case x.status == 200:
		got.reply = from.readWhole(x.body)
	}
	if !c.fails && (x.status != 200 || got.reply.err != nil) {
		t.Fatalf("streamed %v: %v\n%s", stream, got.reply.err, x)
	}
	missing := c.missing(got)
	switch want.kind {
	case isProven, isMoved:
		if missing != "" {
			t.Errorf("streamed %v: missing %s\n%s", stream, missing, x)
		}
	case isDropped:
		if missing == "" {
			t.Errorf("streamed %v: %q is said to be dropped and has arrived\n%s", stream, want.row, x)
		}
	}
	if want.kind != isProven && !documented(from, to, want.row) {
		t.Errorf("nothing in the table of what is dropped says %q from %s to %s", want.row, from.name, to.name)
	}
}

// documented reports whether the table of what is dropped has a row for a pair.
func documented(from inbound, to outbound, field string) bool {
	return slices.ContainsFunc(dialect.DroppedTable(), func(d dialect.Dropped) bool {
		return d.Field == field && (d.From == from.dialect || d.From == dialect.Any) && (d.To == to.dialect || d.To == dialect.Any)
	})
}

// body is a cell's request.
func body(c capability, from inbound, to outbound, stream bool) string {
	limit := cmp.Or(c.limit, 2000)
	head := fmt.Sprintf(`{"model":%q,%q:%d,`, modelOf(to, c.script), from.limit, limit)
	if stream {
		head += `"stream":true,`
		if from.dialect == neutral.Chat {
			head += `"stream_options":{"include_usage":true},`
		}
	}
	return head + c.members[from.dialect] + "}"
}

const pagePath = "../../docs/matrix.md"

// compare holds the page against what was proved. The date is that of the last change.
func compare(t *testing.T, page string) {
	t.Helper()
	have, err := os.ReadFile(pagePath)
	if *update {
		if undated(string(have)) == undated(page) {
			return
		}
		if err := os.WriteFile(pagePath, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil || undated(string(have)) != undated(page) {
		t.Errorf("docs/matrix.md is not what was proved (%v); run go test ./features/matrix -update", err)
	}
}

func undated(page string) string {
	lines := strings.Split(page, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "Last change: ") }), "\n")
}

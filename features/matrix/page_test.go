package matrix

import (
	"fmt"
	"strings"
	"time"
)

// intro stands before the table.
const intro = `# What arrives

A caller of one dialect may be served by a provider of any other. Each cell below was
run through a gateway against the scripted provider, streamed and whole: the request as
a caller of the dialect writes it, and the answer as its client reads it.

Last change: %s

- **yes**: proven. The whole of it arrives, at the provider and back at the caller.
- **moved**: proven. It arrives in another place or form, as the row of
  [dialects](dialects.md) in brackets says.
- **dropped**: it does not arrive, and the row of [dialects](dialects.md) in brackets
  says so.
- **skipped**: such a provider is passed over, because its dialect has no word for what
  is named in brackets. Where no other is left the caller gets 400
  ` + "`capability_unavailable`" + ` before anybody is called.
- **untested**: nothing was proved, for the reason in brackets.

` + "`go test ./features/matrix -v`" + ` prints this page and proves it again.
`

// outro says what the page is no proof of.
const outro = `
## Failover

A chain whose first route is down was walked from each protocol to each, for callers of
each dialect: the second route is asked exactly what it is asked alone, and the caller
hears nothing of the first (TestFailoverAcrossDialects_W14_P3). Every recorded stream was
said in every dialect and read by its official client (TestRecordingsInEveryDialect_P8).

## Real providers

Nothing here was asked of a real provider: untested, for want of credentials. What each
of them has sent is in recorded responses, which the tests of each dialect decode and
give out again. ` + "`sluice smoke`" + ` runs a bounded plan against real providers
with an operator's own keys.
`

var marks = map[kind]string{isProven: "yes", isMoved: "moved", isDropped: "dropped", isSkipped: "skipped", isUntested: "untested"}

func render(results map[string]outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, intro, time.Now().UTC().Format(time.DateOnly))
	for _, from := range inbounds {
		fmt.Fprintf(&b, "\n## Callers of %s (`%s`)\n\n| |", titles[from.name], from.path)
		for _, to := range outbounds {
			fmt.Fprintf(&b, " `%s` |", to.protocol)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(outbounds)) + "\n")
		for _, c := range capabilities {
			fmt.Fprintf(&b, "| %s |", c.name)
			for _, to := range outbounds {
				b.WriteString(" " + mark(results[key(c, from, to)]) + " |")
			}
			b.WriteString("\n")
		}
	}
	b.WriteString(outro)
	return b.String()
}

var titles = map[string]string{"chat": "Chat Completions", "responses": "Responses", "messages": "Messages"}

func mark(o outcome) string {
	if o.row == "" {
		return marks[o.kind]
	}
	return marks[o.kind] + " (" + o.row + ")"
}

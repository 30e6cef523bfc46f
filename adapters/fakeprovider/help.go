package fakeprovider

import (
	"fmt"
	"strings"
)

// Help describes the grammar and lists every fault, one line each. It is made
// from the table that the server itself uses.
func Help() string {
	var b strings.Builder
	b.WriteString(`The model name says what a call gets: "fake-" and a sequence of outcomes.

  fake-ok                   a good answer
  fake-500,500,ok           two failures, then good answers (counted per model name)
  fake-429:1,429:5,429:30   a growing Retry-After
  fake-tool+cut:3:rst+crlf  parts joined by "+" make one outcome

The same outcomes stand in a script, per model, per key or both:

  {"rules":[{"key":"k1","outcomes":["429:30"]},
            {"model":"m","outcomes":["500","500","ok"],"repeat":true}]}

POST /_fake/script   replace the script       GET /_fake/ledger  calls that arrived
POST /_fake/reset    empty ledger, recount    GET /_fake/stats   what is open now
`)
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n%s:\n", s.title)
		for _, f := range s.faults {
			name := f.name
			if f.args != "" {
				name += ":" + f.args
			}
			name = strings.Replace(name, ":[", "[:", 1)
			fmt.Fprintf(&b, "  %-28s %s\n", name, f.doc)
		}
	}
	return b.String()
}

// ModelNames are one model for each fault of the table.
func ModelNames() []string {
	var names []string
	for _, s := range sections() {
		for _, f := range s.faults {
			names = append(names, modelPrefix+f.example)
		}
	}
	return names
}

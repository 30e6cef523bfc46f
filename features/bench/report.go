package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// report is the table at the end.
type report struct{ lines []line }

type line struct{ what, target, figure, verdict string }

func (r *report) atLeast(what string, target, figure float64, format string) {
	r.add(what, ">= ", target, figure, format, figure >= target)
}

func (r *report) atMost(what string, target, figure float64, format string) {
	r.add(what, "<= ", target, figure, format, figure <= target)
}

func (r *report) add(what, relation string, target, figure float64, format string, met bool) {
	verdict := "MISSED"
	if met {
		verdict = "met"
	}
	r.lines = append(r.lines, line{what, relation + fmt.Sprintf("%v", target), fmt.Sprintf(format, figure), verdict})
}

// note is a figure without a target.
func (r *report) note(what, figure string) {
	r.lines = append(r.lines, line{what: what, figure: figure})
}

func (r *report) print(out io.Writer) {
	if len(r.lines) == 0 {
		return
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "measured\ttarget\tfigure\t")
	for _, l := range r.lines {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", l.what, l.target, l.figure, l.verdict)
	}
	_ = table.Flush()
}

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/domain/equivalence"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// printChecked writes a check for people: a line an answer, then what it comes to.
func printChecked(w io.Writer, r checked) error {
	e := r.Evidence
	if r.DryRun {
		return printPlanned(w, e)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CASE\tDEPLOYMENT\tRESULT\tOUTPUT\tSTOP\tIN\tOUT\tCOST\tWHY")
	for _, c := range e.Cases {
		for _, a := range c.Answers {
			s := equivalence.Shape{}
			if a.Shape != nil {
				s = *a.Shape
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, a.Deployment, a.Result,
				cmp.Or(strings.Join(s.Output, "+"), "-"), cmp.Or(s.Stop, "-"), tokensOf(s.Usage.Input), tokensOf(s.Usage.Output), costOf(a), reasonsFor(c, a))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	p := newPaint(w)
	fmt.Fprintln(w)
	for _, m := range e.Pool {
		fmt.Fprintf(w, "%s of %s: %s\n", m.Deployment, m.Provider, painted(p, m.Result))
	}
	printLeftOut(w, e)
	fmt.Fprintf(w, "%s: %s; %d calls, $%s spent", e.Model, painted(p, e.Result), e.Attempts, e.Cost.USD())
	if e.Exposure > 0 {
		fmt.Fprintf(w, " and at most $%s where nobody told", e.Exposure.USD())
	}
	fmt.Fprintf(w, ", of $%s\n", e.MaxSpend.USD())
	if r.Hash == "" {
		_, err := fmt.Fprintln(w, "nobody was called, nothing is stored")
		return err
	}
	_, err := fmt.Fprintf(w, "evidence %s\n", r.Hash)
	return err
}

func printLeftOut(w io.Writer, e equivalence.Evidence) {
	if len(e.LeftOut) > 0 {
		fmt.Fprintf(w, "left out, because no deployment declares it: %s\n", strings.Join(e.LeftOut, ", "))
	}
}

// printPlanned writes what a check would ask.
func printPlanned(w io.Writer, e equivalence.Evidence) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CASE\tDEPLOYMENT\tAT MOST\tWHY NOT")
	calls := 0
	var sum money.NanoUSD
	for _, c := range e.Cases {
		for _, a := range c.Answers {
			most := "-"
			if a.Reason == "" {
				most = "$" + a.WorstCase.USD().String()
				sum += a.WorstCase
				calls++
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", c.Name, a.Deployment, most, a.Reason)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	printLeftOut(w, e)
	_, err := fmt.Fprintf(w, "%d calls, at most $%s together; the ceiling is $%s and %d calls\nnobody was called (--dry-run)\n",
		calls, sum.USD(), e.MaxSpend.USD(), e.MaxAttempts)
	return err
}

// reasonsFor is what an answer's result comes from, in one line.
func reasonsFor(c equivalence.Case, a equivalence.Answer) string {
	var parts []string
	if a.Failure != "" {
		text := string(a.Failure)
		if a.Status != 0 {
			text = fmt.Sprintf("%s %d", text, a.Status)
		}
		parts = append(parts, text)
	}
	if a.Reason != "" {
		parts = append(parts, string(a.Reason))
	}
	for _, d := range c.Differences {
		switch {
		case d.Deployment != a.Deployment:
		case d.Against == "":
			parts = append(parts, fmt.Sprintf("%s: %s, not %s", d.Aspect, d.Got, d.Want))
		default:
			parts = append(parts, fmt.Sprintf("%s: %s, %s has %s", d.Aspect, d.Got, d.Against, d.Want))
		}
	}
	return strings.Join(parts, "; ")
}

func tokensOf(c usage.Count) string {
	if !c.Known() {
		return "-"
	}
	return fmt.Sprint(c.N)
}

func costOf(a equivalence.Answer) string {
	switch {
	case a.Cost != nil:
		return "$" + a.Cost.USD().String()
	case a.Shape == nil && a.Failure == "":
		return "-"
	}
	return "unknown"
}

func painted(p paint, r equivalence.Result) string {
	switch r {
	case equivalence.Passed:
		return p.green(string(r))
	case equivalence.Failed:
		return p.red(string(r))
	}
	return p.yellow(string(r))
}

// printChecks lists stored checks, the newest last, as they stand in the log.
func printChecks(w io.Writer, list []config.EquivalenceCheck) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "AT\tBY\tRESULT\tCALLS\tCOST\tDEPLOYMENTS\tEVIDENCE")
	for _, c := range list {
		var names []string
		for _, m := range c.Evidence.Pool {
			names = append(names, m.Deployment)
		}
		slices.Sort(names)
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t$%s\t%s\t%s\n", c.At.Format(time.RFC3339), cmp.Or(c.Actor, "unknown"), c.Evidence.Result,
			c.Evidence.Attempts, c.Evidence.Cost.USD(), strings.Join(names, ", "), c.Hash)
	}
	return table.Flush()
}

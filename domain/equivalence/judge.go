package equivalence

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-gateway/sluice/domain/usage"
)

const (
	// toleranceShare is how far the counts of one text may lie apart, a twentieth of the
	// larger: hosts of one model wrap a message in a few tokens of their own, while another
	// tokenizer counts a text of several languages 10 percent and more apart.
	toleranceShare = 20
	// toleranceTokens is what is always allowed: a twentieth of a short prompt is less than
	// one such wrapping.
	toleranceTokens = 8
)

// Demand is what the answer to a case must have, whoever gives it.
type Demand struct {
	// Output must be among the kinds of output.
	Output string
	// Stop is how the answer must end.
	Stop string
	// TextBeside allows text next to what was asked for, which a model adds or leaves out
	// as it likes: it is not compared.
	TextBeside bool
	// ToTheLimit says that every answer runs to the same limit of output tokens, so that
	// those too can be compared.
	ToTheLimit bool
}

// Judge compares the answers of a case and writes its results. Answers that were not
// asked for keep the result and the reason that they have; the others have a Shape or
// a Failure.
func Judge(c *Case, d Demand) {
	c.Reference, c.Differences = "", nil
	var reference *Shape
	answered := 0
	for i := range c.Answers {
		a := &c.Answers[i]
		switch {
		case a.Failure != "":
			a.Result = Failed
			continue
		case a.Shape == nil:
			continue
		}
		answered++
		found := missing(*a.Shape, d)
		if len(found) == 0 && reference == nil {
			reference, c.Reference = a.Shape, a.Deployment
		} else if len(found) == 0 {
			found = compare(*reference, *a.Shape, d)
			for j := range found {
				found[j].Against = c.Reference
			}
		}
		a.Result = Passed
		if len(found) > 0 {
			a.Result = Failed
		}
		for _, f := range found {
			f.Deployment = a.Deployment
			c.Differences = append(c.Differences, f)
		}
	}
	if answered < 2 {
		alone(c)
	}
	c.Result = worst(len(c.Answers), func(i int) Result { return c.Answers[i].Result })
}

// alone takes back a result that rests on no comparison.
func alone(c *Case) {
	for i := range c.Answers {
		if a := &c.Answers[i]; a.Result == Passed {
			a.Result, a.Reason = Untested, NothingToCompare
		}
	}
}

// Conclude writes the results of the members and of the whole from those of the cases,
// which must have been judged.
func Conclude(e *Evidence) {
	for i := range e.Pool {
		e.Pool[i].Result = worst(len(e.Cases), func(j int) Result { return e.Cases[j].Answers[i].Result })
	}
	e.Result = worst(len(e.Pool), func(i int) Result { return e.Pool[i].Result })
}

// gravity orders results: one that is worse decides for the whole.
var gravity = []Result{Passed, Untested, Blocked, Failed}

// worst is the worst of n results. Of none it is Untested: what was not looked at has
// not passed.
func worst(n int, at func(int) Result) Result {
	grave := -1
	for i := range n {
		grave = max(grave, slices.Index(gravity, at(i)))
	}
	if grave < 0 {
		return Untested
	}
	return gravity[grave]
}

// missing is what an answer lacks of what the case asks for.
func missing(s Shape, d Demand) []Difference {
	var found []Difference
	say := func(aspect Aspect, want, got string) {
		found = append(found, Difference{Aspect: aspect, Want: want, Got: got})
	}
	if d.Output != "" && !slices.Contains(s.Output, d.Output) {
		say(AspectOutput, d.Output, words(s.Output))
	}
	if s.Stop != d.Stop {
		say(AspectStopReason, d.Stop, word(s.Stop))
	}
	for _, call := range s.Calls {
		switch {
		case call.Tool == OtherTool:
			say(AspectTools, "a tool that was offered", OtherTool)
		case !call.Valid:
			say(AspectArguments, "arguments of the tool's schema", "others, for "+call.Tool)
		}
	}
	if s.Structured != nil && !*s.Structured {
		say(AspectStructure, "output of the schema", "other output")
	}
	if s.Overrun {
		say(AspectStopSequence, "text up to the stop sequence", "text past it")
	}
	return found
}

// compare is in what an answer differs from the reference. Both have what the case
// asks for.
func compare(reference, s Shape, d Demand) []Difference {
	var found []Difference
	differ := func(aspect Aspect, want, got string) {
		if want != got {
			found = append(found, Difference{Aspect: aspect, Want: want, Got: got})
		}
	}
	differ(AspectOutput, words(kinds(reference, d)), words(kinds(s, d)))
	differ(AspectTools, words(tools(reference)), words(tools(s)))
	differ(AspectUsage, reported(reference.Usage), reported(s.Usage))
	if !near(reference.Usage.Input, s.Usage.Input) {
		differ(AspectInputTokens, count(reference.Usage.Input), count(s.Usage.Input))
	}
	if d.ToTheLimit && !near(reference.Usage.Output, s.Usage.Output) {
		differ(AspectOutputTokens, count(reference.Usage.Output), count(s.Usage.Output))
	}
	return found
}

func kinds(s Shape, d Demand) []string {
	if !d.TextBeside {
		return s.Output
	}
	return slices.DeleteFunc(slices.Clone(s.Output), func(kind string) bool { return kind == "text" })
}

func tools(s Shape) []string {
	names := make([]string, len(s.Calls))
	for i, call := range s.Calls {
		names[i] = call.Tool
	}
	return names
}

// reported tells which of the two counts that a bill is made of are there. Zero for
// both is unknown, as it is when it is settled (M4).
func reported(u usage.Usage) string {
	switch {
	case u.Usable():
		return "input and output"
	case u.Input.Known() && u.Output.Known():
		return "zero"
	case u.Input.Known():
		return "input only"
	case u.Output.Known():
		return "output only"
	}
	return "none"
}

// near reports whether two counts are the same within the tolerance. A count that is
// not there is AspectUsage's.
func near(a, b usage.Count) bool {
	if !a.Known() || !b.Known() {
		return true
	}
	apart := max(a.N, b.N) - min(a.N, b.N)
	return apart <= max(toleranceTokens, max(a.N, b.N)/toleranceShare)
}

func count(c usage.Count) string { return strconv.FormatInt(c.N, 10) }

func word(w string) string {
	if w == "" {
		return "none"
	}
	return w
}

func words(list []string) string { return word(strings.Join(list, ", ")) }

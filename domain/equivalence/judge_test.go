package equivalence_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/domain/equivalence"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// counted is usage of in and out.
func counted(in, out int64) usage.Usage {
	return usage.Usage{Input: usage.Of(in), Output: usage.Of(out)}
}

// calling is a proper answer to a case with a tool.
func calling() *equivalence.Shape {
	return &equivalence.Shape{
		Output: []string{"tool_call"}, Calls: []equivalence.Call{{Tool: "clock", Valid: true}}, Stop: "tool_calls", Usage: counted(200, 20),
	}
}

var demand = equivalence.Demand{Output: "tool_call", Stop: "tool_calls", TextBeside: true}

// judged is a case that two deployments answered.
func judged(d equivalence.Demand, first, second *equivalence.Shape) equivalence.Case {
	c := equivalence.Case{Name: "one_tool", Answers: []equivalence.Answer{
		{Deployment: "a", Shape: first}, {Deployment: "b", Shape: second},
	}}
	equivalence.Judge(&c, d)
	return c
}

// Each aspect alone makes a difference, and only of the deployment that has it.
//
// Rules: N24.
func TestEachAspectIsCompared_N24(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(s *equivalence.Shape)
		aspect  equivalence.Aspect
		against string
		got     string
	}{
		"kinds of output":        {func(s *equivalence.Shape) { s.Output = []string{"reasoning", "tool_call"} }, equivalence.AspectOutput, "a", "reasoning, tool_call"},
		"nothing of what is due": {func(s *equivalence.Shape) { s.Output = []string{"text"} }, equivalence.AspectOutput, "", "text"},
		"which tools":            {func(s *equivalence.Shape) { s.Calls[0].Tool = "weather" }, equivalence.AspectTools, "a", "weather"},
		"how many calls":         {func(s *equivalence.Shape) { s.Calls = append(s.Calls, s.Calls[0]) }, equivalence.AspectTools, "a", "clock, clock"},
		"a tool of its own":      {func(s *equivalence.Shape) { s.Calls[0] = equivalence.Call{Tool: equivalence.OtherTool} }, equivalence.AspectTools, "", "another_tool"},
		"arguments":              {func(s *equivalence.Shape) { s.Calls[0].Valid = false }, equivalence.AspectArguments, "", "others, for clock"},
		"structure":              {func(s *equivalence.Shape) { s.Structured = new(false) }, equivalence.AspectStructure, "", "other output"},
		"stop reason":            {func(s *equivalence.Shape) { s.Stop = "length" }, equivalence.AspectStopReason, "", "length"},
		"no stop reason":         {func(s *equivalence.Shape) { s.Stop = "" }, equivalence.AspectStopReason, "", "none"},
		"stop sequence":          {func(s *equivalence.Shape) { s.Overrun = true }, equivalence.AspectStopSequence, "", "text past it"},
		"no usage":               {func(s *equivalence.Shape) { s.Usage = usage.Usage{} }, equivalence.AspectUsage, "a", "none"},
		"zero usage":             {func(s *equivalence.Shape) { s.Usage = counted(0, 0) }, equivalence.AspectUsage, "a", "zero"},
		"no output count":        {func(s *equivalence.Shape) { s.Usage.Output = usage.Count{} }, equivalence.AspectUsage, "a", "input only"},
		"another tokenizer":      {func(s *equivalence.Shape) { s.Usage.Input = usage.Of(211) }, equivalence.AspectInputTokens, "a", "211"},
	} {
		second := calling()
		c.change(second)
		got := judged(demand, calling(), second)
		if got.Result != equivalence.Failed || got.Answers[0].Result != equivalence.Passed || got.Answers[1].Result != equivalence.Failed || got.Reference != "a" {
			t.Errorf("%s: %+v", name, got)
		}
		i := slices.IndexFunc(got.Differences, func(d equivalence.Difference) bool { return d.Aspect == c.aspect })
		if i < 0 || got.Differences[i].Deployment != "b" || got.Differences[i].Against != c.against || got.Differences[i].Got != c.got {
			t.Errorf("%s: differences %+v", name, got.Differences)
		}
	}
}

// What a model may do or not, and what counts may differ by, is no difference.
//
// Rules: N24.
func TestWhatIsNotCompared_N24(t *testing.T) {
	for name, change := range map[string]func(s *equivalence.Shape){
		"nothing":              func(*equivalence.Shape) {},
		"text beside a call":   func(s *equivalence.Shape) { s.Output = []string{"text", "tool_call"} },
		"how long it is":       func(s *equivalence.Shape) { s.Usage.Output = usage.Of(90) },
		"a twentieth more":     func(s *equivalence.Shape) { s.Usage.Input = usage.Of(210) },
		"what came from cache": func(s *equivalence.Shape) { s.Usage.CachedInput = usage.Of(128) },
	} {
		second := calling()
		change(second)
		if got := judged(demand, calling(), second); got.Result != equivalence.Passed || len(got.Differences) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// Eight tokens of a short prompt are more than a twentieth, and still a wrapping.
	short, wrapped := calling(), calling()
	short.Usage.Input, wrapped.Usage.Input = usage.Of(20), usage.Of(28)
	if got := judged(demand, short, wrapped); got.Result != equivalence.Passed {
		t.Errorf("wrapped: %+v", got.Differences)
	}
	// Where all run to one limit, what they count as output is compared too.
	limited := demand
	limited.ToTheLimit = true
	more := calling()
	more.Usage.Output = usage.Of(29)
	if got := judged(limited, calling(), more); len(got.Differences) != 1 || got.Differences[0].Aspect != equivalence.AspectOutputTokens {
		t.Errorf("to the limit: %+v", got.Differences)
	}
}

// An answer that is not what the case asks for is not what the others are measured by.
//
// Rules: N24.
func TestTheReferenceAnsweredAsAsked_N24(t *testing.T) {
	wrong := calling()
	wrong.Stop = "length"
	c := equivalence.Case{Answers: []equivalence.Answer{
		{Deployment: "a", Shape: wrong}, {Deployment: "b", Shape: calling()}, {Deployment: "c", Shape: calling()},
	}}
	equivalence.Judge(&c, demand)
	if c.Reference != "b" || c.Answers[0].Result != equivalence.Failed || c.Answers[2].Result != equivalence.Passed || c.Result != equivalence.Failed {
		t.Errorf("%+v", c)
	}
}

// Nothing passes that was not compared, and the worst decides for a whole.
//
// Rules: N24, Q1.
func TestNothingPassesUncompared_N24_Q1(t *testing.T) {
	c := equivalence.Case{Answers: []equivalence.Answer{
		{Deployment: "a", Shape: calling()},
		{Deployment: "b", Failure: failure.ServerError, Result: equivalence.Untested},
		{Deployment: "c", Result: equivalence.Blocked, Reason: equivalence.MaxUSD},
	}}
	equivalence.Judge(&c, demand)
	if a := c.Answers[0]; a.Result != equivalence.Untested || a.Reason != equivalence.NothingToCompare {
		t.Errorf("alone: %+v", a)
	}
	if c.Answers[1].Result != equivalence.Failed || c.Answers[2].Result != equivalence.Blocked || c.Result != equivalence.Failed {
		t.Errorf("%+v", c)
	}
	results := func(list ...equivalence.Result) equivalence.Evidence {
		e := equivalence.Evidence{Pool: make([]equivalence.Member, 1)}
		for _, r := range list {
			e.Cases = append(e.Cases, equivalence.Case{Answers: []equivalence.Answer{{Result: r}}})
		}
		equivalence.Conclude(&e)
		return e
	}
	for want, list := range map[equivalence.Result][]equivalence.Result{
		equivalence.Passed:   {equivalence.Passed, equivalence.Passed},
		equivalence.Untested: {equivalence.Untested, equivalence.Passed},
		equivalence.Blocked:  {equivalence.Untested, equivalence.Blocked, equivalence.Passed},
		equivalence.Failed:   {equivalence.Passed, equivalence.Failed, equivalence.Blocked, equivalence.Untested},
	} {
		if got := results(list...); got.Result != want || got.Pool[0].Result != want {
			t.Errorf("%v make %s", list, got.Result)
		}
	}
	if got := results(); got.Result != equivalence.Untested {
		t.Errorf("nothing at all is %s", got.Result)
	}
}

// Evidence is named by all that it says.
//
// Rules: N24.
func TestTheHashIsOfTheContent_N24(t *testing.T) {
	e := equivalence.Evidence{Format: equivalence.Format, Model: "m", Cases: []equivalence.Case{judged(demand, calling(), calling())}}
	first := e.Hash()
	if !strings.HasPrefix(first, equivalence.HashPrefix) || len(first) != len("sha256:")+64 || e.Hash() != first {
		t.Errorf("hash %s", first)
	}
	e.Cases = []equivalence.Case{judged(demand, calling(), calling())}
	e.Cases[0].Answers[1].Shape.Calls[0].Valid = false
	if e.Hash() == first {
		t.Error("another answer has the same hash")
	}
}

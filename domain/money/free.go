package money

import (
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/usage"
)

// Free says which parts of an attempt are free to the customer (M10). What the
// provider asks for them stays what it is: somebody else pays it.
type Free struct {
	// Input is what is sent and not read from a cache, what is written to one included.
	Input bool `json:"input,omitempty"`
	// CachedInput is what is read from a cache. It is not free because input is: it has
	// its own, lower price.
	CachedInput bool `json:"cached_input,omitempty"`
	Output      bool `json:"output,omitempty"`
}

// Nothing reports whether nothing is free.
func (f Free) Nothing() bool { return f == Free{} }

// String lists what is free, for people.
func (f Free) String() string {
	var parts []string
	for _, p := range []struct {
		free bool
		name string
	}{{f.Input, "input"}, {f.CachedInput, "cached input"}, {f.Output, "output"}} {
		if p.free {
			parts = append(parts, p.name)
		}
	}
	if n := len(parts); n > 1 {
		parts = append(parts[:n-2], parts[n-2]+" and "+parts[n-1])
	}
	return strings.Join(parts, ", ")
}

// Given is how much of something was, or may be, given away: its tokens, and what they
// cost at their list price.
type Given struct {
	Tokens int64
	Cost   NanoUSD
}

// Split is an attempt's list cost divided between those who pay it.
type Split struct {
	List   NanoUSD
	Charge NanoUSD
	// Subsidy is the rest of List: Charge and Subsidy are never rounded apart.
	Subsidy NanoUSD
	// Input and Output are what was given away. The sum of their costs may differ from
	// Subsidy by a nano-USD, because each is rounded on its own.
	Input, Output Given
	// Exact is false where the usage contradicted itself; see CostOf.
	Exact bool
}

// Split prices usage as CostOf does and charges what is not free. p must be Known and
// u Usable.
func (p Prices) Split(u usage.Usage, f Free) (Split, error) {
	s := Split{Exact: true}
	b, err := p.bill(u)
	if err != nil {
		s.Exact = false
		if b, err = p.bill(usage.Usage{Input: u.Input, Output: u.Output}); err != nil {
			return Split{}, err
		}
	}
	paid, in, out := b.divide(f)
	for _, sum := range []struct {
		parts []part
		to    *NanoUSD
	}{{slices.Concat(b.input, b.cached, b.output), &s.List}, {paid, &s.Charge}, {in, &s.Input.Cost}, {out, &s.Output.Cost}} {
		if *sum.to, err = total(sum.parts...); err != nil {
			return Split{}, err
		}
	}
	s.Subsidy = s.List - s.Charge
	s.Input.Tokens, s.Output.Tokens = tokensOf(in), tokensOf(out)
	return s, nil
}

// divide sorts a bill's parts by who pays them.
func (b bill) divide(f Free) (paid, in, out []part) {
	for _, one := range []struct {
		parts []part
		free  bool
		to    *[]part
	}{{b.input, f.Input, &in}, {b.cached, f.CachedInput, &in}, {b.output, f.Output, &out}} {
		if !one.free {
			one.to = &paid
		}
		*one.to = append(*one.to, one.parts...)
	}
	return paid, in, out
}

// tokensOf counts parts of one whole, which fits.
func tokensOf(parts []part) int64 {
	var n int64
	for _, p := range parts {
		n += p.tokens
	}
	return n
}

// WorstSplit is the most that an attempt may cost its customer where some of it is free
// (M2), and the most that may be given away.
type WorstSplit struct {
	Charge        NanoUSD
	Input, Output Given
}

// WorstSplit divides the worst case. Any of the input may turn out to have been read
// from a cache, so where that is not free all of it may have to be paid at that rate;
// and any of it may not have been, so all of it may be given away. p must be Known.
func (p Prices) WorstSplit(inputTokens, outputCeiling int64, holds Media, f Free) (WorstSplit, error) {
	if inputTokens < 0 || outputCeiling < 0 {
		return WorstSplit{}, ErrNegative
	}
	t := p.tierFor(inputTokens)
	input, output := part{t.dearestInput(holds), inputTokens}, part{t.dearestOutput(holds), outputCeiling}
	var paid, in, out []part
	switch {
	case !f.Input:
		paid = append(paid, input)
	case !f.CachedInput:
		paid = append(paid, part{t.cacheRead, inputTokens})
	}
	if f.Input || f.CachedInput {
		in = append(in, input)
	}
	if f.Output {
		out = append(out, output)
	} else {
		paid = append(paid, output)
	}
	w := WorstSplit{Input: Given{Tokens: tokensOf(in)}, Output: Given{Tokens: tokensOf(out)}}
	for _, sum := range []struct {
		parts []part
		to    *NanoUSD
	}{{paid, &w.Charge}, {in, &w.Input.Cost}, {out, &w.Output.Cost}} {
		var err error
		if *sum.to, err = total(sum.parts...); err != nil {
			return WorstSplit{}, err
		}
	}
	return w, nil
}

// TokensFor is about how many tokens an amount buys at a rate in USD per million; 0
// where that is not known.
func TokensFor(amount NanoUSD, rate *decimal.Decimal) int64 {
	if rate == nil || !rate.IsPositive() || amount <= 0 {
		return 0
	}
	tokens := amount.USD().Shift(6).DivRound(*rate, 0)
	if tokens.GreaterThan(maxUnscaled) {
		return 0
	}
	return tokens.IntPart()
}

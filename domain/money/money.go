// Package money prices usage. Amounts are int64 nano-USD, prices are exact
// decimals, and there is one place that rounds.
package money

import (
	"errors"
	"math"

	"github.com/shopspring/decimal"
)

// NanoUSD is an amount of money: 1 USD = 1,000,000,000 (M1).
type NanoUSD int64

// NanoPerUSD is how many nano-USD make one USD.
const NanoPerUSD NanoUSD = 1_000_000_000

// ErrOverflow is an amount that int64 nano-USD (about 9.2 billion USD) cannot
// hold. It is an error, never a wrapped number.
var ErrOverflow = errors.New("money: amount does not fit")

// ErrNegative is a price or a token count below zero: contradictory data, never a
// credit.
var ErrNegative = errors.New("money: negative price or count")

var (
	maxNano   = decimal.NewFromInt(math.MaxInt64)
	nanoInUSD = decimal.NewFromInt(int64(NanoPerUSD))
)

// round is the one rounding place of the project: to whole nano-USD, half away
// from zero (M1). Everything before it is exact.
func round(d decimal.Decimal) (NanoUSD, error) {
	r := d.Round(0)
	if r.Abs().GreaterThan(maxNano) {
		return 0, ErrOverflow
	}
	return NanoUSD(r.IntPart()), nil
}

// FromUSD turns a written amount such as "500.00" into nano-USD.
func FromUSD(d decimal.Decimal) (NanoUSD, error) {
	return round(d.Mul(nanoInUSD))
}

// USD is the amount as an exact decimal number of dollars, for people.
func (n NanoUSD) USD() decimal.Decimal {
	return decimal.New(int64(n), -9)
}

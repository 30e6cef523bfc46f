// Package money prices usage. Amounts are int64 nano-USD, prices are exact
// decimals, and there is one place that rounds.
package money

import (
	"errors"
	"math"
	"math/bits"
	"strings"

	"github.com/shopspring/decimal"
)

// NanoUSD is an amount of money: 1 USD = 1,000,000,000 (M1).
type NanoUSD int64

// MaxCost is a million USD, more than any attempt can cost: usage and prices that come to
// more are nonsense, and a sum of a few such would overflow every bill and counter that
// it stands in.
const MaxCost = 1_000_000 * NanoPerUSD

// NanoPerUSD is how many nano-USD make one USD.
const NanoPerUSD NanoUSD = 1_000_000_000

var (
	// ErrOverflow is an amount that int64 nano-USD (about 9.2 billion USD) cannot
	// hold, or a cost above MaxCost. It is an error, never a wrapped number.
	ErrOverflow = errors.New("money: amount does not fit")
	// ErrNegative is a price or a token count below zero: contradictory data, never a
	// credit.
	ErrNegative = errors.New("money: negative price or count")
	// ErrTooPrecise is more decimal places than are kept exactly.
	ErrTooPrecise = errors.New("money: more decimal places than are kept")
)

// Decimal places that are kept exactly: of an amount one nano-USD, of a price a
// thousandth of a nano-USD per token. A price in whole units of 10^-12 USD still
// fits 64 bits up to 9 million USD per million tokens.
const (
	amountPlaces = 9
	pricePlaces  = 12
)

// unscaled is a non-negative decimal in whole units of 10^-places: exact or an
// error.
func unscaled(d decimal.Decimal, places int32) (uint64, error) {
	if d.IsNegative() {
		return 0, ErrNegative
	}
	// Trailing zeros are no precision: 1.0000000000000 is 1.
	if d.Exponent() < -places {
		if !d.Equal(d.Truncate(places)) {
			return 0, ErrTooPrecise
		}
		d = d.Truncate(places)
	}
	// The common case without big numbers: a few digits and a small exponent.
	if e := d.Exponent(); e <= 0 && d.NumDigits() <= 6 {
		return uint64(d.CoefficientInt64()) * pow10[places+e], nil
	}
	shifted := d.Shift(places)
	if shifted.GreaterThan(maxUnscaled) {
		return 0, ErrOverflow
	}
	return uint64(shifted.IntPart()), nil
}

var (
	maxUnscaled = decimal.NewFromInt(math.MaxInt64)
	pow10       = [pricePlaces + 1]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12}
)

// FromUSD turns a written amount such as "500.00" into nano-USD, exactly.
func FromUSD(d decimal.Decimal) (NanoUSD, error) {
	n, err := unscaled(d, amountPlaces)
	return NanoUSD(n), err
}

// ParseUSD reads an amount as FromUSD does. A plain one ("500", "12.5") is read without
// a decimal in between: limits are read for every reservation.
func ParseUSD(text string) (NanoUSD, error) {
	if n, ok := plainUSD(text); ok {
		return n, nil
	}
	d, err := decimal.NewFromString(text)
	if err != nil {
		return 0, err
	}
	return FromUSD(d)
}

// plainUSD reads at most nine digits before a point and nine after it, which fit int64
// whatever they are.
func plainUSD(text string) (NanoUSD, bool) {
	whole, fraction, pointed := strings.Cut(text, ".")
	if whole == "" || len(whole) > amountPlaces || len(fraction) > amountPlaces || pointed && fraction == "" {
		return 0, false
	}
	var n uint64
	for _, digits := range [2]string{whole, fraction} {
		for i := range len(digits) {
			d := digits[i] - '0'
			if d > 9 {
				return 0, false
			}
			n = n*10 + uint64(d)
		}
	}
	return NanoUSD(n * pow10[amountPlaces-len(fraction)]), true
}

// USD is the amount as an exact decimal number of dollars, for people.
func (n NanoUSD) USD() decimal.Decimal {
	return decimal.New(int64(n), -amountPlaces)
}

// Scale is the amount times a ratio of two others, as a share of a cost is when the
// cost changes. No operand may be negative, and whole not zero.
func (n NanoUSD) Scale(part, whole NanoUSD) (NanoUSD, error) {
	if n < 0 || part < 0 || whole <= 0 {
		return 0, ErrNegative
	}
	hi, lo := bits.Mul64(uint64(n), uint64(part))
	return nearest(hi, lo, uint64(whole))
}

// percentPlaces are the decimal places of a percentage that are kept exactly: finer
// than anybody writes, and 1 % is still a small number of units.
const percentPlaces = 6

// wholePercent is how many units of a percentage make the whole amount.
const wholePercent = 100 * 1_000_000

// Percent is a percentage of the amount, rounded once, half away from zero (M1).
// Neither may be negative; a percentage of more than six decimal places is
// ErrTooPrecise.
func (n NanoUSD) Percent(percent decimal.Decimal) (NanoUSD, error) {
	units, err := unscaled(percent, percentPlaces)
	if err != nil {
		return 0, err
	}
	return n.Scale(NanoUSD(units), wholePercent)
}

// sum adds products exactly: 128 bits of rate x tokens, in 10^-18 USD.
type sum struct{ hi, lo uint64 }

// add takes a rate in 10^-12 USD per million tokens and a count of tokens.
func (s *sum) add(rate, tokens uint64) error {
	hi, lo := bits.Mul64(rate, tokens)
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi, carry = bits.Add64(s.hi, hi, carry)
	if carry != 0 {
		return ErrOverflow
	}
	return nil
}

// perNano is how many units of a sum make one nano-USD.
const perNano = 1_000_000_000

// round is the one rounding place of the project: to whole nano-USD, half away
// from zero (M1). Everything before it is exact.
func (s sum) round() (NanoUSD, error) {
	n, err := nearest(s.hi, s.lo, perNano)
	if err == nil && n > MaxCost {
		return 0, ErrOverflow
	}
	return n, err
}

// nearest divides 128 bits and rounds half away from zero.
func nearest(hi, lo, divisor uint64) (NanoUSD, error) {
	if hi >= divisor {
		return 0, ErrOverflow
	}
	quotient, remainder := bits.Div64(hi, lo, divisor)
	if remainder >= divisor-remainder {
		quotient++
	}
	if quotient > math.MaxInt64 {
		return 0, ErrOverflow
	}
	return NanoUSD(quotient), nil
}

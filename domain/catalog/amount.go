package catalog

import (
	"math/big"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/money"
)

// Bounds of written numbers. An exponent is cheap to write and dear to expand
// ("1e999999999"), so size is judged before anything is computed.
const (
	// maxFractionDigits of a price: a thousandth of a nano-USD per token.
	maxFractionDigits = 12
	// maxIntegerDigits of a price: a dollar per token is beyond every price list.
	maxIntegerDigits = 6
	// maxBudgetFractionDigits is one nano-USD; a finer limit could not be counted.
	maxBudgetFractionDigits = 9
	// maxBudgetIntegerDigits keeps a budget inside int64 nano-USD.
	maxBudgetIntegerDigits = 9
)

// fits reports whether d has at most so many digits before and after the point.
func fits(d decimal.Decimal, integers, fractions int) bool {
	exp := int(d.Exponent())
	return exp >= -fractions && exp <= integers && d.NumDigits()+exp <= integers
}

// canonicalDecimal is the one form of a value: no trailing zeros, no positive
// exponent. Then equal values are equal structs and have one JSON form, whatever
// decimal's package-wide formatting switches say. What is out of bounds comes
// back untouched, for validation to refuse.
func canonicalDecimal(d decimal.Decimal) decimal.Decimal {
	if exp := d.Exponent(); exp > maxBudgetIntegerDigits || exp < -64 {
		return d
	}
	coefficient, exp := d.Coefficient(), d.Exponent()
	if coefficient.Sign() == 0 {
		return decimal.Zero
	}
	ten, rest := big.NewInt(10), new(big.Int)
	for exp < 0 {
		quotient := new(big.Int)
		if quotient.QuoRem(coefficient, ten, rest); rest.Sign() != 0 {
			break
		}
		coefficient, exp = quotient, exp+1
	}
	for ; exp > 0; exp-- {
		coefficient.Mul(coefficient, ten)
	}
	return decimal.NewFromBigInt(coefficient, exp)
}

// canonicalUSD writes an amount the one way: "500.00" and "500" are one limit.
// What is no amount stays as it is, for validation to refuse.
func canonicalUSD(usd string) string {
	amount, err := decimal.NewFromString(usd)
	if err != nil || !fits(canonicalDecimal(amount), maxBudgetIntegerDigits, maxBudgetFractionDigits) {
		return usd
	}
	return canonicalDecimal(amount).String()
}

func canonicalPrices(p money.Prices) money.Prices {
	p.Input, p.Output = canonicalRate(p.Input), canonicalRate(p.Output)
	p.CacheRead = canonicalRate(p.CacheRead)
	p.CacheWrite5m, p.CacheWrite1h = canonicalRate(p.CacheWrite5m), canonicalRate(p.CacheWrite1h)
	p.AudioInput, p.ImageInput = canonicalRate(p.AudioInput), canonicalRate(p.ImageInput)
	p.AudioOutput, p.ImageOutput = canonicalRate(p.AudioOutput), canonicalRate(p.ImageOutput)
	if p.LongContext != nil {
		l := *p.LongContext
		l.Input, l.Output = canonicalRate(l.Input), canonicalRate(l.Output)
		l.CacheRead = canonicalRate(l.CacheRead)
		l.CacheWrite5m, l.CacheWrite1h = canonicalRate(l.CacheWrite5m), canonicalRate(l.CacheWrite1h)
		p.LongContext = &l
	}
	return p
}

func canonicalRate(rate *decimal.Decimal) *decimal.Decimal {
	if rate == nil {
		return nil
	}
	return new(canonicalDecimal(*rate))
}

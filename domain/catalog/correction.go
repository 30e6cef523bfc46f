package catalog

import (
	"slices"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/domain/money"
)

// PriceCorrected says what a deployment's rates truly were in the past (M15). It
// changes no price from now on, which is PriceSet's, and no bill by itself: the
// bills take it in when they are rebuilt. Where two corrections hold for one moment,
// the later one written is right. Stream deployment/<id>.
type PriceCorrected struct {
	Deployment string `json:"deployment"`
	// From and To bound when the attempts were settled that the rates hold for: from
	// From on, before To.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Prices are the corrected rates, all of them; their source says where they were
	// read.
	Prices money.Prices `json:"prices"`
	// Reason stands on the bills that the correction changes.
	Reason string `json:"reason"`
}

// Canonical is the correction in the one form that is written.
func (c PriceCorrected) Canonical() PriceCorrected {
	c.From, c.To = c.From.UTC().Truncate(time.Microsecond), c.To.UTC().Truncate(time.Microsecond)
	c.Reason = strings.TrimSpace(c.Reason)
	c.Prices = canonicalPrices(c.Prices)
	return c
}

// Validate says what is wrong with a correction that is written at now: the rates
// are held to what a deployment's are, both main rates must be known, and the
// interval lies in the past, because what is still to come has PriceSet.
func (c PriceCorrected) Validate(now time.Time) []Problem {
	var v validation
	v.prices("prices", Deployment{Prices: c.Prices})
	if c.Prices.Input == nil {
		v.fail("prices.input", "is missing: a correction carries every rate")
	}
	if c.Prices.Output == nil {
		v.fail("prices.output", "is missing: a correction carries every rate")
	}
	v.text("reason", c.Reason, true)
	switch {
	case c.From.IsZero() || c.To.IsZero():
		v.fail("from", "name the interval: from and to")
	case !c.From.Before(c.To):
		v.fail("to", "must be after from")
	case c.To.After(now):
		v.fail("to", "is in the future: set the price for what is still to come, and correct up to now")
	}
	return slices.Clip(v.problems)
}

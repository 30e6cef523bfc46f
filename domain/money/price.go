package money

import (
	"math"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/usage"
)

// Prices are what one deployment charges, in USD per million tokens. A nil rate
// is unknown, which is not the same as zero (M6).
type Prices struct {
	Input        *decimal.Decimal `json:"input,omitempty"`
	Output       *decimal.Decimal `json:"output,omitempty"`
	CacheRead    *decimal.Decimal `json:"cache_read,omitempty"`
	CacheWrite5m *decimal.Decimal `json:"cache_write_5m,omitempty"`
	CacheWrite1h *decimal.Decimal `json:"cache_write_1h,omitempty"`
	// What is not text, where it has a price of its own; nil is text's.
	AudioInput  *decimal.Decimal `json:"audio_input,omitempty"`
	ImageInput  *decimal.Decimal `json:"image_input,omitempty"`
	AudioOutput *decimal.Decimal `json:"audio_output,omitempty"`
	ImageOutput *decimal.Decimal `json:"image_output,omitempty"`
	LongContext *LongContext     `json:"long_context,omitempty"`
	// Source says where the rates were read and when; it is for people.
	Source string `json:"source,omitempty"`
}

// LongContext are the rates that replace the ordinary ones for the whole request
// once its input is longer than AboveInputTokens. A nil rate keeps the ordinary
// one.
type LongContext struct {
	AboveInputTokens int64            `json:"above_input_tokens"`
	Input            *decimal.Decimal `json:"input,omitempty"`
	Output           *decimal.Decimal `json:"output,omitempty"`
	CacheRead        *decimal.Decimal `json:"cache_read,omitempty"`
	CacheWrite5m     *decimal.Decimal `json:"cache_write_5m,omitempty"`
	CacheWrite1h     *decimal.Decimal `json:"cache_write_1h,omitempty"`
}

// Known reports whether a request can be priced at all. A rung without is skipped
// as `price_unknown` (M3).
func (p Prices) Known() bool { return p.Input != nil && p.Output != nil }

// Validate refuses negative rates, rates that are not kept exactly, and a nonsense
// threshold.
func (p Prices) Validate() error {
	rates := []*decimal.Decimal{
		p.Input, p.Output, p.CacheRead, p.CacheWrite5m, p.CacheWrite1h,
		p.AudioInput, p.ImageInput, p.AudioOutput, p.ImageOutput,
	}
	if l := p.LongContext; l != nil {
		if l.AboveInputTokens <= 0 {
			return ErrNegative
		}
		rates = append(rates, l.Input, l.Output, l.CacheRead, l.CacheWrite5m, l.CacheWrite1h)
	}
	for _, r := range rates {
		if r == nil {
			continue
		}
		if _, err := unscaled(*r, pricePlaces); err != nil {
			return err
		}
	}
	return nil
}

// tier is the set of rates that one attempt pays.
type tier struct {
	input, output, cacheRead, cacheWrite5m, cacheWrite1h *decimal.Decimal
	audioInput, imageInput, audioOutput, imageOutput     *decimal.Decimal
}

// tierFor picks the rates for an input length. Missing cache rates price as full
// input (M6): dearer than the truth for reads, and the deployment is flagged by
// CachePriceMissing until someone sets them.
func (p Prices) tierFor(inputTokens int64) tier {
	in, out, read, w5, w1 := p.Input, p.Output, p.CacheRead, p.CacheWrite5m, p.CacheWrite1h
	if l := p.LongContext; l != nil && inputTokens > l.AboveInputTokens {
		in, out = first(l.Input, in), first(l.Output, out)
		read, w5, w1 = first(l.CacheRead, read), first(l.CacheWrite5m, w5), first(l.CacheWrite1h, w1)
	}
	return tier{
		input: in, output: out, cacheRead: first(read, in), cacheWrite5m: first(w5, in), cacheWrite1h: first(w1, in),
		audioInput: first(p.AudioInput, in), imageInput: first(p.ImageInput, in),
		audioOutput: first(p.AudioOutput, out), imageOutput: first(p.ImageOutput, out),
	}
}

func first(a, b *decimal.Decimal) *decimal.Decimal {
	if a != nil {
		return a
	}
	return b
}

// CachePriceMissing is the flag of M6.
func (p Prices) CachePriceMissing() bool { return p.Known() && p.CacheRead == nil }

// Media is what a request holds or asks for beside text: which of the rates apply (M2).
type Media struct{ Images, Audio bool }

// WorstCase is what an attempt may cost at most (M2): the estimated input at its
// dearest applicable input rate, and the output ceiling at its. Whether an answer will
// hold images nobody knows before it is there. p must be Known.
func (p Prices) WorstCase(inputTokens, outputCeiling int64, holds Media) (NanoUSD, error) {
	w, err := p.WorstSplit(inputTokens, outputCeiling, holds, Free{})
	return w.Charge, err
}

func (t tier) dearestInput(holds Media) *decimal.Decimal {
	rate := dearest(t.input, t.cacheRead, t.cacheWrite5m, t.cacheWrite1h)
	if holds.Images {
		rate = dearest(rate, t.imageInput)
	}
	if holds.Audio {
		rate = dearest(rate, t.audioInput)
	}
	return rate
}

func (t tier) dearestOutput(holds Media) *decimal.Decimal {
	rate := dearest(t.output, t.imageOutput)
	if holds.Audio {
		rate = dearest(rate, t.audioOutput)
	}
	return rate
}

func dearest(most *decimal.Decimal, others ...*decimal.Decimal) *decimal.Decimal {
	for _, rate := range others {
		if rate.GreaterThan(*most) {
			most = rate
		}
	}
	return most
}

// Cost is what reported usage costs (M4): cached and written tokens are parts of
// the input and reasoning is a part of the output, so that nothing is priced
// twice. The parts must fit their whole; otherwise the data contradicts itself
// and ErrNegative comes back. p must be Known and u Usable.
func (p Prices) Cost(u usage.Usage) (NanoUSD, error) {
	b, err := p.bill(u)
	if err != nil {
		return 0, err
	}
	return total(slices.Concat(b.input, b.cached, b.output)...)
}

// bill is usage with the rate of each of its parts; input is what no cache gave.
type bill struct{ input, cached, output []part }

func (p Prices) bill(u usage.Usage) (bill, error) {
	input, output := u.Input.N, u.Output.N
	cached, w5, w1 := u.CachedInput.Or(0), u.CacheWrite5m.Or(0), u.CacheWrite1h.Or(0)
	// Each part is checked before they are taken off: a sum of huge counts could
	// wrap around into a plausible one.
	fresh := input
	for _, n := range []int64{cached, w5, w1} {
		if n < 0 || n > fresh {
			return bill{}, ErrNegative
		}
		fresh -= n
	}
	if fresh < 0 || output < 0 {
		return bill{}, ErrNegative
	}
	t := p.tierFor(input)
	// Media that came from a cache are in both counts: the cache's rate is theirs.
	audioIn, imageIn, textIn := media(u.AudioInput, u.ImageInput, fresh)
	audioOut, imageOut, textOut := media(u.AudioOutput, u.ImageOutput, output)
	return bill{
		input: []part{
			{t.input, textIn}, {t.audioInput, audioIn}, {t.imageInput, imageIn}, {t.cacheWrite5m, w5}, {t.cacheWrite1h, w1},
		},
		cached: []part{{t.cacheRead, cached}},
		output: []part{{t.output, textOut}, {t.audioOutput, audioOut}, {t.imageOutput, imageOut}},
	}, nil
}

// media splits a whole into its audio, its images and its text, none of them negative.
func media(audio, images usage.Count, whole int64) (a, i, text int64) {
	a = min(max(audio.Or(0), 0), whole)
	i = min(max(images.Or(0), 0), whole-a)
	return a, i, whole - a - i
}

// CostOf is Cost for usage that a settlement has to be made of whatever it says:
// parts that exceed their whole contradict themselves, but the totals are still the
// provider's word, so they are priced in full rather than turned into a credit. exact
// is false then.
func (p Prices) CostOf(u usage.Usage) (cost NanoUSD, exact bool, err error) {
	s, err := p.Split(u, Free{})
	return s.List, s.Exact, err
}

// part is a number of tokens at a rate.
type part struct {
	rate   *decimal.Decimal
	tokens int64
}

// total sums parts exactly and rounds once.
func total(parts ...part) (NanoUSD, error) {
	var s sum
	for _, p := range parts {
		if p.tokens == 0 {
			continue
		}
		rate, err := unscaled(*p.rate, pricePlaces)
		if err != nil {
			return 0, err
		}
		if err := s.add(rate, uint64(p.tokens)); err != nil {
			return 0, err
		}
	}
	return s.round()
}

// PartsPerToken is how finely weighted tokens are counted.
const PartsPerToken = 1_000

// WindowParts is how much of a window of tokens an attempt's usage takes (R3):
// I - min(C,I) x d + O with d = 1 - min(cache price, input price) / input price, at the
// rates of the attempt's own tier, and no discount where a price is missing or zero.
// Reasoning is in O already. In parts of a token; counts that are unknown are zero, and
// one that no int64 holds is the largest.
func (p Prices) WindowParts(u usage.Usage) int64 {
	input, output := max(u.Input.Or(0), 0), max(u.Output.Or(0), 0)
	cached := min(max(u.CachedInput.Or(0), 0), input)
	full := decimal.NewFromInt(input - cached).Add(decimal.NewFromInt(output))
	read := decimal.NewFromInt(cached)
	if t := p.tierFor(input); cached > 0 && t.input != nil && t.input.IsPositive() {
		// tierFor prices a missing cache rate as input, which is no discount.
		read = read.Mul(decimal.Min(*t.cacheRead, *t.input)).DivRound(*t.input, windowPlaces)
	}
	parts := full.Add(read).Mul(decimal.NewFromInt(PartsPerToken)).Round(0)
	if parts.GreaterThan(maxUnscaled) {
		return math.MaxInt64
	}
	return parts.IntPart()
}

// windowPlaces is more than the parts of a token need, so that a share that does not
// end is not rounded twice at the same place.
const windowPlaces = 9

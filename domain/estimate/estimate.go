// Package estimate is the planning number of A6: how many tokens a request will
// cost, before anybody has counted them. It is pure; the counts come from outside.
package estimate

// The weights of A6, in tokens but for Headroom.
const (
	// PerMessage is what a message's framing costs in every known chat template.
	PerMessage = 4
	// ToolsOverhead is the hidden prompt that any tool at all brings with it.
	ToolsOverhead = 400
	PerTool       = 12
	PerImage      = 2_048
	// PerDocument is a document of unknown size.
	PerDocument = 16_384
	// MinDocument is the least for a document whose size is known.
	MinDocument = 2_048
	// DocumentBytesPerToken and Base64BytesPerToken turn opaque bytes into tokens.
	DocumentBytesPerToken = 32
	Base64BytesPerToken   = 4
	// HeadroomPercent is added for tokenizers that are not o200k_base.
	HeadroomPercent = 15
)

// maxBytes bounds a size before it is multiplied: 1 TiB is more than any body and
// far from overflow.
const maxBytes = 1 << 40

// Counts is what a request is made of.
type Counts struct {
	// TextTokens are the o200k_base tokens of all text.
	TextTokens int64
	Messages   int
	Tools      int
	Images     int
	// Documents has one entry a document: its size in bytes, 0 when unknown.
	Documents []int64
	// Base64Bytes is opaque base64 that is neither image nor document.
	Base64Bytes int64
}

// InputTokens is the number that money and rates are reserved with: everything
// that may become input, with headroom, rounded up once at the end (A6).
func (c Counts) InputTokens() int64 {
	// In 32nds of a token every weight is a whole number: nothing is rounded on the
	// way, and no float decides about a limit.
	const unit = DocumentBytesPerToken
	tokens := c.TextTokens + PerMessage*int64(c.Messages) + PerTool*int64(c.Tools) + PerImage*int64(c.Images)
	if c.Tools > 0 {
		tokens += ToolsOverhead
	}
	sum := tokens*unit + bounded(c.Base64Bytes)*(unit/Base64BytesPerToken)
	for _, size := range c.Documents {
		if size <= 0 {
			sum += PerDocument * unit
			continue
		}
		sum += max(MinDocument*unit, bounded(size))
	}
	const whole = 100 * unit
	return (sum*(100+HeadroomPercent) + whole - 1) / whole
}

// FloorTokens is the lower bound that windows are checked with: the text alone
// (A5). A request is refused only for what is certainly there; framing, images and
// headroom are guesses, and a guess must not turn a request away that fits.
func (c Counts) FloorTokens() int64 { return c.TextTokens }

func bounded(bytes int64) int64 { return min(max(bytes, 0), maxBytes) }

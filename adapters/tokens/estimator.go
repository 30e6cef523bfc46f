package tokens

import (
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/estimate"
)

const (
	// countedBytes is how much text of one request is counted; what lies beyond is
	// extrapolated. 2 MiB is half a million tokens of English and takes 15 ms; made
	// to be slow, it takes 0.2 s, and that is the most one request can cost.
	countedBytes = 2 << 20
	// beyondBytesPerToken is what uncounted text is taken for at least: denser than
	// English (4.3) and code (3.5). The text before it may say more.
	beyondBytesPerToken = 3
	// beyondFloorBytesPerToken is the same for the lower bound: sparser than any
	// ordinary text, so that nothing is refused on an extrapolation alone.
	beyondFloorBytesPerToken = 16
)

// Estimator counts tokens. It keeps nothing of what it has counted, is immutable,
// and may be used by any number of goroutines.
type Estimator struct{ vocabulary *vocabulary }

// NewEstimator builds the vocabulary's index: once a process, a few milliseconds
// and 3 MB.
func NewEstimator() *Estimator { return &Estimator{vocabulary: newVocabulary()} }

// Estimate is what a request is planned with.
type Estimate struct {
	// FloorTokens is the text alone, which windows are checked with (A5).
	FloorTokens int64
	// InputTokens is what is reserved (A6).
	InputTokens int64
}

// Estimate counts a request's prompt. It is the one expensive look at it: call it
// once a request and keep the result, whatever the number of attempts (A6).
func (e *Estimator) Estimate(req *dialect.Request) Estimate {
	var counted, bytes, beyond int64
	for text := range req.Texts() {
		take := min(int64(len(text)), countedBytes-bytes)
		counted += e.Count(text[:take])
		bytes += take
		beyond += int64(len(text)) - take
	}
	counts := estimate.Counts{
		TextTokens: counted + beyond/beyondFloorBytesPerToken,
		Messages:   req.Parts.Messages, Tools: req.Parts.Tools, Images: req.Parts.Images,
		Documents: req.Parts.Documents, Base64Bytes: req.Parts.Base64Bytes,
	}
	floor := counts.FloorTokens()
	counts.TextTokens = counted + extrapolated(counted, bytes, beyond)
	return Estimate{FloorTokens: floor, InputTokens: counts.InputTokens()}
}

// extrapolated is what beyond more bytes hold, at the density of those that were
// counted or at beyondBytesPerToken, whichever is more.
func extrapolated(counted, bytes, beyond int64) int64 {
	if beyond == 0 {
		return 0
	}
	return max(beyond/beyondBytesPerToken, beyond*counted/bytes)
}

// Count is the o200k_base tokens of a text. It is linear in the text: see
// maxPieceBytes.
func (e *Estimator) Count(text []byte) int64 {
	var n int64
	for len(text) > 0 {
		end := pieceEnd(text)
		piece := text[:end]
		text = text[end:]
		for len(piece) > maxPieceBytes {
			n += int64(e.vocabulary.count(piece[:maxPieceBytes]))
			piece = piece[maxPieceBytes:]
		}
		n += int64(e.vocabulary.count(piece))
	}
	return n
}

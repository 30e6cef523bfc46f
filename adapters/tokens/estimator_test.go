package tokens

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/adapters/dialect"
)

var (
	shared  = NewEstimator()
	library = sync.OnceValue(codec.NewO200kBase)
)

// TestVocabularyIsTheLibrarys compares every token and its rank.
func TestVocabularyIsTheLibrarys(t *testing.T) {
	v := shared.vocabulary
	if len(v.offsets) != 199_998 {
		t.Fatalf("%d tokens", len(v.offsets))
	}
	for id := range v.offsets {
		token, err := library().Decode([]uint{uint(id)})
		if err != nil {
			t.Fatal(err)
		}
		if got := v.rank([]byte(token)); got != uint32(id) {
			t.Fatalf("token %q has rank %d, want %d", token, got, id)
		}
	}
}

// pieces are building blocks that make the pattern's alternatives meet.
var pieces = []string{
	"a", "B", "Ab", "aB", "word", "WORD", " ", "  ", "\t", "\n", "\r\n", " \n", "\u00a0", "\u3000", "\u2028",
	"1", "12", "1234", "½", "Ⅷ", "٣", "'", "'s", "'S", "'ll", "'LL", "'re", "'vE", "'m", "'d", "'t", "'ſ", "'x",
	"/", "//", "(", "…", "—", "漢", "汉字", "の", "カ", "한", "é", "e\u0301", "\u0301", "ǅ", "ʰ", "ß", "Ж", "ж", "א", "ع",
	"🙂", "👩‍👩‍👧", "𝔘", "𝒶", "𐐀", "𐐨", "\u200d", "_", "<|endoftext|>", "\ufffd", "\x00",
}

// TestCountAgreesWithTheLibrary_A6: the hand-written pattern and the merging give
// the same number as the reference on every mix of the alternatives.
//
// Rules: A6.
func TestCountAgreesWithTheLibrary_A6(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 24).Draw(t, "pieces"), "")
		agrees(t, text)
	})
	rapid.Check(t, func(t *rapid.T) { agrees(t, rapid.StringN(0, 24, 64).Draw(t, "text")) })
}

type fataler interface{ Fatalf(string, ...any) }

// linesAmongBlanks is where the library differs from the pattern as it is written,
// \s*[\r\n]+, which takes blanks and lines in one piece.
var linesAmongBlanks = regexp.MustCompile(`[\s\v\x{85}\p{Z}]*[\r\n][\s\v\x{85}\p{Z}]*`)

// agrees compares with the library, but for its two known slips: the blanks above
// and U+007F, which it drops.
func agrees(t fataler, text string) {
	text = strings.ReplaceAll(linesAmongBlanks.ReplaceAllString(text, "\n"), "\x7f", "")
	want, err := library().Count(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if got := shared.Count([]byte(text)); got != int64(want) {
		t.Fatalf("%q: %d tokens, want %d", text, got, want)
	}
}

// pattern is o200k_base's for an engine without look-ahead: the last two
// alternatives are one here, and split tells them apart.
var pattern = regexp.MustCompile(`^(?:` +
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
	`\p{N}{1,3}| ?[^\s\v\x{85}\p{Z}\p{L}\p{N}]+[\r\n/]*|[\s\v\x{85}\p{Z}]*[\r\n]+|([\s\v\x{85}\p{Z}]+))`)

// patternEnd is pieceEnd by the regular expression.
func patternEnd(text []byte) int {
	m := pattern.FindSubmatchIndex(text)
	blanks := m[2] >= 0
	if blanks && m[1] < len(text) {
		// \s+(?!\S): the last blank is left to what follows, if it is not the only one.
		if _, last := utf8.DecodeLastRune(text[:m[1]]); last < m[1] {
			return m[1] - last
		}
	}
	return m[1]
}

// TestPiecesAreThePatterns_A6: the hand-written matcher cuts where the pattern does.
//
// Rules: A6.
func TestPiecesAreThePatterns_A6(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 24).Draw(t, "pieces"), ""))
		for len(text) > 0 {
			end := pieceEnd(text)
			if want := patternEnd(text); end != want {
				t.Fatalf("%q: %q, want %q", text, text[:end], text[:want])
			}
			text = text[end:]
		}
	})
}

func FuzzCount(f *testing.F) {
	for _, s := range append(pieces, english, cjk, code) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := shared.Count([]byte(text))
		if got > int64(len(text)) || (got == 0) != (text == "") {
			t.Fatalf("%q: %d tokens of %d bytes", text, got, len(text))
		}
		// Past this length pieces may be cut, and the library takes quadratic time.
		if len(text) <= maxPieceBytes && utf8.ValidString(text) {
			agrees(t, text)
		}
	})
}

// TestLongRunsLoseLittle: cutting an unbroken run overstates it by a few percent.
func TestLongRunsLoseLittle(t *testing.T) {
	for _, unit := range []string{"a", " ", "-", "汉字测试", "QUJDREVGx9", "aB", "=", "\t"} {
		text := strings.Repeat(unit, 16<<10/len(unit))
		want, _ := library().Count(text)
		got := shared.Count([]byte(text))
		if got < int64(want) || float64(got) > 1.05*float64(want)+1 {
			t.Errorf("%q repeated: %d tokens, the library says %d", unit, got, want)
		}
	}
}

func request(texts ...string) *dialect.Request {
	r := &dialect.Request{}
	for _, s := range texts {
		start := len(r.Raw)
		r.Raw = append(r.Raw, s...)
		r.Parts.Spans = append(r.Parts.Spans, dialect.Span{Start: start, End: len(r.Raw), Escaped: strings.Contains(s, `\`)})
	}
	return r
}

// TestEstimateCountsAllParts_A6: texts are unescaped before they are counted, and
// everything beside the text goes into the planning number alone.
//
// Rules: A6.
func TestEstimateCountsAllParts_A6(t *testing.T) {
	r := request("hello world", `caf\u00e9\n`)
	r.Parts.Messages, r.Parts.Tools, r.Parts.Images = 2, 1, 1
	r.Parts.Documents, r.Parts.Base64Bytes = []int64{320_000}, 4000
	want, _ := library().Count("café\n")
	got := shared.Estimate(r)
	if got.FloorTokens != int64(2+want) {
		t.Errorf("floor %d, want %d", got.FloorTokens, 2+want)
	}
	// 1.15 x (text + 8 + 412 + 2048 + 10000 + 1000), rounded up.
	if sum := int64(2+want) + 8 + 412 + 2048 + 10_000 + 1000; got.InputTokens != (sum*115+99)/100 {
		t.Errorf("input %d for %d", got.InputTokens, sum)
	}
}

// TestEstimateBeyondWhatIsCounted: an endless body is extrapolated, never less for
// being longer, and its floor stays a lower bound.
func TestEstimateBeyondWhatIsCounted(t *testing.T) {
	whole := strings.Repeat("word ", countedBytes/5)
	counted := shared.Estimate(request(whole))
	more := shared.Estimate(request(whole, strings.Repeat("word ", 1000)))
	// 5,000 more bytes are 1,000 tokens; at 3 bytes a token they are taken for 1,666.
	if over := more.InputTokens - counted.InputTokens; over < 1150 || over > 2000 {
		t.Errorf("%d tokens for 1,000 words", over)
	}
	if over := more.FloorTokens - counted.FloorTokens; over < 300 || over > 1000 {
		t.Errorf("floor grew by %d for 1,000 words", over)
	}
	dense := strings.Repeat("~a7", countedBytes/3)
	counted, more = shared.Estimate(request(dense)), shared.Estimate(request(dense, strings.Repeat("~a7", 1000)))
	if over := more.InputTokens - counted.InputTokens; over < 2*1150 {
		t.Errorf("%d tokens: text denser than the guess must be taken at its own density", over)
	}
}

var (
	english = strings.Repeat("The quick brown fox jumps over the lazy dog, and then some. ", 18)[:1024]
	cjk     = strings.Repeat("这是一个用来测试分词速度的句子，里面有很多汉字。", 20)[:1023]
	code    = strings.Repeat("func (m *Machine) next(now time.Time) Move {\n\tif m.req.Fallback == FallbackNone {\n\t\treturn m.exhausted(now, \"\")\n\t}\n}\n", 10)[:1024]
)

func BenchmarkCount(b *testing.B) {
	for name, text := range map[string]string{
		"english": english, "cjk": cjk, "code": code,
		"base64": strings.Repeat("QUJDREVGx9Rk", 1024/12), "one letter": strings.Repeat("a", 1024),
		"blanks and lines": strings.Repeat(" \n", 512), "blanks": strings.Repeat(" ", 1024),
		"hyphens": strings.Repeat("-", 1024), "broken": strings.Repeat("\xff", 1024),
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(text)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				shared.Count(data)
			}
		})
	}
}

func BenchmarkNewEstimator(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		NewEstimator()
	}
}

package tokens

import (
	"unicode"
	"unicode/utf8"
)

// class is what the pattern of o200k_base knows about a character.
type class uint8

const (
	// upper is in [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], lower in
	// [\p{Ll}\p{Lm}\p{Lo}\p{M}]; letters without case and marks are both.
	upper class = 1 << iota
	lower
	mark
	number
	space
	newline
)

const letter = upper | lower

// basicPlane classifies the first 65,536 characters: a lookup instead of up to six
// binary searches through the tables of Unicode.
var basicPlane = func() (table [1 << 16]class) {
	for _, row := range classTables {
		for _, t := range row.tables {
			for _, r := range t.R16 {
				// As int: the last range may end at the last 16-bit number.
				for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
					table[c] |= row.class
				}
			}
		}
	}
	return table
}()

var classTables = []struct {
	class  class
	tables []*unicode.RangeTable
}{
	{upper, []*unicode.RangeTable{unicode.Lu, unicode.Lt}},
	{lower, []*unicode.RangeTable{unicode.Ll}},
	{letter, []*unicode.RangeTable{unicode.Lm, unicode.Lo}},
	{letter | mark, []*unicode.RangeTable{unicode.M}},
	{number, []*unicode.RangeTable{unicode.N}},
	{space, []*unicode.RangeTable{unicode.White_Space}},
	{newline, []*unicode.RangeTable{{R16: []unicode.Range16{{Lo: '\n', Hi: '\n', Stride: 1}, {Lo: '\r', Hi: '\r', Stride: 1}}}}},
}

// classAt is the class and the length of the character that text[i:] begins with;
// length 0 at the end.
func classAt(text []byte, i int) (class, int) {
	if i >= len(text) {
		return 0, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return basicPlane[b], 1
	}
	r, n := utf8.DecodeRune(text[i:])
	if int(r) < len(basicPlane) {
		return basicPlane[r], n
	}
	var c class
	for _, row := range classTables {
		if unicode.In(r, row.tables...) {
			c |= row.class
		}
	}
	return c, n
}

// pieceEnd is where the first piece of text ends under the pattern of o200k_base,
// whose alternatives are tried in this order:
//
//	[^\r\n\p{L}\p{N}]?  upper* lower+  (?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?  upper+ lower*  (?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+ | \s+(?!\S) | \s+
//
// text must not be empty.
func pieceEnd(text []byte) int {
	c, n := classAt(text, 0)
	if c&letter != 0 {
		return wordEnd(text, 0)
	}
	if c&number != 0 {
		return numberEnd(text)
	}
	if c&newline == 0 {
		// One character of punctuation or blank joins the word behind it.
		if next, _ := classAt(text, n); next&letter != 0 {
			return wordEnd(text, n)
		}
	}
	if end, ok := symbolsEnd(text); ok {
		return end
	}
	return spacesEnd(text)
}

// wordEnd matches the first two alternatives from i, where a letter or a mark
// stands.
func wordEnd(text []byte, i int) int {
	// How far upper* reaches, and the end of the last character in it that lower+
	// could take instead: what the pattern would find by backtracking.
	lastBoth := -1
	c, n := classAt(text, i)
	for c&upper != 0 {
		i += n
		if c&lower != 0 {
			lastBoth = i
		}
		c, n = classAt(text, i)
	}
	switch {
	case c&lower != 0:
		for c&lower != 0 {
			i += n
			c, n = classAt(text, i)
		}
	case lastBoth >= 0:
		i = lastBoth
	}
	return i + contraction(text[i:])
}

// contraction is the length of the English contraction that text begins with.
func contraction(text []byte) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	switch text[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(text) > 2 && text[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(text) > 2 && text[2]|0x20 == 'l' {
			return 3
		}
	}
	// Folding case, the long s is an s.
	if r, n := utf8.DecodeRune(text[1:]); r == 'ſ' {
		return 1 + n
	}
	return 0
}

func numberEnd(text []byte) int {
	end := 0
	for range 3 {
		c, n := classAt(text, end)
		if c&number == 0 {
			break
		}
		end += n
	}
	return end
}

// symbolsEnd matches the fourth alternative.
func symbolsEnd(text []byte) (int, bool) {
	// Marks are no letters to this alternative: they belong to the run.
	symbol := func(i int) int {
		c, n := classAt(text, i)
		if c&mark == 0 && c&(letter|number|space) != 0 {
			return 0
		}
		return n
	}
	i := 0
	if text[0] == ' ' {
		i = 1
	}
	n := symbol(i)
	if n == 0 {
		return 0, false
	}
	for ; n > 0; n = symbol(i) {
		i += n
	}
	for i < len(text) && (text[i] == '\n' || text[i] == '\r' || text[i] == '/') {
		i++
	}
	return i, true
}

// spacesEnd matches the last three alternatives: up to the last line end of the
// blanks, else all of them but the last, which joins what follows.
func spacesEnd(text []byte) int {
	end, beforeLast, lastLine := 0, 0, 0
	c, n := classAt(text, 0)
	for c&space != 0 {
		beforeLast, end = end, end+n
		if c&newline != 0 {
			lastLine = end
		}
		c, n = classAt(text, end)
	}
	switch {
	case lastLine > 0:
		return lastLine
	case end == len(text), beforeLast == 0:
		return end
	default:
		return beforeLast
	}
}

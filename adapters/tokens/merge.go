package tokens

// maxPieceBytes is where a piece without a break is cut. Merging costs the square
// of a piece's length, and a body of one unbroken run must not buy seconds of
// processor. The longest token has 128 bytes, so a run of blanks loses nothing;
// any other run (base64, a long CJK clause) is overstated by about one token a
// cut, under 2 %.
const maxPieceBytes = 128

// candidate is two neighbours that may merge: the rank of what they become above
// the place where the first begins. The smallest of them is the next merge:
// lowest rank first, leftmost among equals. 18 bits of rank and 8 of place.
type candidate uint32

const (
	placeBits = 8
	// never is the candidate of a part that has nothing to merge with.
	never = ^candidate(0)
)

func candidateAt(place int, rank uint32) candidate {
	if rank == noRank {
		return never
	}
	return candidate(rank<<placeBits | uint32(place))
}

// merging is a piece on its way into tokens. Parts are known by the byte they
// begin at, so that a merge moves nothing: it takes one place out of the list.
type merging struct {
	// best[i] is the merge of the part at i with the next one.
	best [maxPieceBytes]candidate
	// next and prev link the parts; next of the last is the length of the piece.
	next, prev [maxPieceBytes + 1]uint8
}

// count is how many tokens a piece of at most maxPieceBytes becomes: byte pairs
// merge in the order of their rank, leftmost first, until none is left.
func (v *vocabulary) count(piece []byte) int {
	if len(piece) == 1 || v.rank(piece) != noRank {
		return 1
	}
	var m merging
	for i := range piece {
		m.next[i], m.prev[i+1] = uint8(i+1), uint8(i)
		m.best[i] = never
		if i+1 < len(piece) {
			m.best[i] = candidateAt(i, v.pairs[int(piece[i])<<8|int(piece[i+1])])
		}
	}
	tokens := len(piece)
	for {
		c := lowest(m.best[:len(piece)])
		if c == never {
			return tokens
		}
		at := int(c & (1<<placeBits - 1))
		gone := m.next[at]
		after := m.next[gone]
		m.next[at], m.prev[after], m.best[gone] = after, uint8(at), never
		tokens--
		m.best[at] = v.candidate(piece, &m, at)
		if at > 0 {
			before := int(m.prev[at])
			m.best[before] = v.candidate(piece, &m, before)
		}
	}
}

// candidate is the merge of the part at a place with the one after it.
func (v *vocabulary) candidate(piece []byte, m *merging, at int) candidate {
	second := int(m.next[at])
	if second == len(piece) {
		return never
	}
	return candidateAt(at, v.rank(piece[at:m.next[second]]))
}

// lowest takes four lanes at a time: without a branch in the loop, and with four
// chains of comparisons instead of one, it is a third of the obvious loop's cost.
func lowest(c []candidate) candidate {
	a, b, d, e := never, never, never, never
	for len(c) >= 4 {
		a, b, d, e = min(a, c[0]), min(b, c[1]), min(d, c[2]), min(e, c[3])
		c = c[4:]
	}
	for _, x := range c {
		a = min(a, x)
	}
	return min(a, b, d, e)
}

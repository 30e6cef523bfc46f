package tokens

import (
	_ "embed"
	"hash/maphash"
)

//go:generate go run generate.go

// ranks is the vocabulary of o200k_base: 199,998 tokens in the order of their
// rank, one byte of length before each. The runtime maps it from the binary, so it
// is shared between processes and costs no heap.
//
//go:embed o200k_base.ranks
var ranks string

const (
	// slotBits sizes the hash table: 2^19 slots of 4 bytes, 38 % full, so that a
	// probe rarely needs a second look.
	slotBits = 19
	slotMask = 1<<slotBits - 1
	// noRank is a pair that does not merge.
	noRank = ^uint32(0)
)

// vocabulary finds the rank of a token.
//
// A Go map of strings does the same in 7 MB of heap that the collector walks;
// this is 3 MB without a pointer.
type vocabulary struct {
	seed maphash.Seed
	// slots hold rank+1; 0 is free.
	slots []uint32
	// offsets are where each token begins in ranks, behind its length.
	offsets []uint32
	// pairs are the ranks of all tokens of two bytes, which every merge starts with.
	pairs []uint32
	// longest is the length of the longest token.
	longest int
}

func newVocabulary() *vocabulary {
	v := &vocabulary{
		seed:    maphash.MakeSeed(),
		slots:   make([]uint32, 1<<slotBits),
		offsets: make([]uint32, 0, 200_000),
		pairs:   make([]uint32, 1<<16),
	}
	for i := range v.pairs {
		v.pairs[i] = noRank
	}
	for at := 0; at < len(ranks); {
		size := int(ranks[at])
		at++
		v.add(ranks[at:at+size], uint32(at))
		at += size
	}
	return v
}

func (v *vocabulary) add(token string, offset uint32) {
	rank := uint32(len(v.offsets))
	v.offsets = append(v.offsets, offset)
	v.longest = max(v.longest, len(token))
	if len(token) == 2 {
		v.pairs[int(token[0])<<8|int(token[1])] = rank
	}
	slot := maphash.String(v.seed, token) & slotMask
	for v.slots[slot] != 0 {
		slot = (slot + 1) & slotMask
	}
	v.slots[slot] = rank + 1
}

// rank is the rank of a token, or noRank.
func (v *vocabulary) rank(token []byte) uint32 {
	if len(token) > v.longest {
		return noRank
	}
	for slot := maphash.Bytes(v.seed, token) & slotMask; ; slot = (slot + 1) & slotMask {
		found := v.slots[slot]
		if found == 0 {
			return noRank
		}
		if at := int(v.offsets[found-1]); int(ranks[at-1]) == len(token) && ranks[at:at+len(token)] == string(token) {
			return found - 1
		}
	}
}

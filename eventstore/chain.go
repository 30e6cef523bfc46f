package eventstore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// hashFormat versions the input of chainHash. A stored batch is verified by the
// format it names; a new format gets a new number and leaves the old one here.
const hashFormat = 1

// Hash is a link of the chain.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Head is the end of a shard's log: the position of its last event and the hash
// over everything up to it. Kept elsewhere it proves later that nothing before it
// was changed (E9): a chain alone cannot, against whoever can rewrite all of it.
type Head struct {
	Shard    int16
	Position int64
	Hash     Hash
}

// chainHash is the one place where the log is hashed (E9): the format, the
// previous hash, then every stored column of every row, texts with their length
// in front so that no two different batches read the same. It covers the stored
// bytes, never JSON written again: field order and escaping would differ sooner or
// later.
func chainHash(previous Hash, shard int16, recordedAt time.Time, rows []row) Hash {
	c := newChainHasher(previous)
	for i := range rows {
		c.add(shard, recordedAt, &rows[i])
	}
	return c.sum()
}

type chainHasher struct {
	buf []byte
}

// The input is gathered and hashed in one call: SHA-256 of one long buffer is
// faster than many short writes.
func newChainHasher(previous Hash) *chainHasher {
	c := &chainHasher{buf: make([]byte, 0, 16<<10)}
	c.buf = append(c.buf, hashFormat)
	c.buf = append(c.buf, previous[:]...)
	return c
}

func (c *chainHasher) add(shard int16, recordedAt time.Time, r *row) {
	c.number(int64(shard))
	c.number(r.position)
	c.number(int64(r.events))
	c.text(r.stream)
	c.number(r.version)
	c.number(r.born.UnixMicro())
	c.number(recordedAt.UnixMicro())
	c.text(r.meta)
	c.text(r.body)
}

func (c *chainHasher) number(n int64) { c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(n)) }

func (c *chainHasher) text(s string) {
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(len(s)))
	c.buf = append(c.buf, s...)
}

func (c *chainHasher) sum() Hash { return sha256.Sum256(c.buf) }

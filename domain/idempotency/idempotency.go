// Package idempotency is the claim behind an Idempotency-Key: shared by all
// workers, kept in the log, without content (I3). One stream a key:
// idempotency/<tenant>/<hash>.
//
// The hashes are keyed ones. A bare hash of a short prompt, or of a counter that
// somebody uses as a key, could be guessed by whoever reads the log (E10).
package idempotency

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// KeyClaimed says that a request runs under the key. Whoever finds it never runs
// the request a second time.
type KeyClaimed struct {
	Request string `json:"request"`
	// Body is the keyed hash of the body that the key was claimed with.
	Body string `json:"body"`
}

// KeyCompleted says that the request under the key was answered.
type KeyCompleted struct {
	Request string `json:"request"`
}

// KeyAbandoned says that the request under the key failed. The key is not used
// again: a provider may have been called (I2).
type KeyAbandoned struct {
	Request string `json:"request"`
	Code    string `json:"code"`
}

// KeyReleased says that the request under the key was refused before anybody was
// called. Nothing ran, so the key is free again.
type KeyReleased struct {
	Request string `json:"request"`
}

// State is what is known of a key.
type State uint8

// Free keys may be claimed. The other states are final for whoever does not hold
// the answer.
const (
	Free State = iota
	Claimed
	Completed
	Abandoned
)

// Claim is what the events of one key add up to.
type Claim struct {
	State   State
	Request string
	Body    string
	// Version is the stream's, for the next append.
	Version int64
}

// Apply folds one event.
func (c *Claim) Apply(e any) {
	c.Version++
	switch e := e.(type) {
	case KeyClaimed:
		c.State, c.Request, c.Body = Claimed, e.Request, e.Body
	case KeyCompleted:
		c.State = Completed
	case KeyAbandoned:
		c.State = Abandoned
	case KeyReleased:
		c.State = Free
	}
}

// Hasher makes keyed hashes with a secret of the installation.
type Hasher struct{ secret []byte }

// NewHasher takes the installation's secret, the same on every worker.
func NewHasher(secret []byte) Hasher { return Hasher{secret: secret} }

// Stream names the claim of a caller's key. The tenant and the surface are part of
// it: two organizations with the same key, or one key on two endpoints, never
// meet.
func (h Hasher) Stream(tenant, surface, key string) string {
	return "idempotency/" + tenant + "/" + h.sum("key", tenant, surface, key)
}

// Body is the keyed hash of a request's body.
func (h Hasher) Body(tenant string, body []byte) string {
	return h.sum("body", tenant, "", string(body))
}

// sum separates its parts by their length, so that no two lists of parts read the
// same.
func (h Hasher) sum(parts ...string) string {
	mac := hmac.New(sha256.New, h.secret)
	for _, p := range parts {
		n := len(p)
		mac.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		mac.Write([]byte(p))
	}
	return hex.EncodeToString(mac.Sum(nil))
}

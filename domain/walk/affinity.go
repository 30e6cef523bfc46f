package walk

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// Fingerprint is a conversation as the walk knows it: a keyed hash that names
// nobody. Two customers who send the same hint never share one (K1).
type Fingerprint [sha256.Size]byte

// NewFingerprint mixes a caller's hint with who the caller is.
func NewFingerprint(tenant, key, hint string) Fingerprint {
	mac := hmac.New(sha256.New, []byte("sluice conversation"))
	for _, part := range []string{tenant, key, hint} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		mac.Write(length[:])
		mac.Write([]byte(part))
	}
	var f Fingerprint
	mac.Sum(f[:0])
	return f
}

// affinity is a rung's score for a conversation by weighted rendezvous hashing
// (T3): -weight / ln(u), with u in (0,1) from a hash of the deployment's id alone,
// so that a rotated credential moves nobody and a removed rung moves only its own
// conversations.
func (f Fingerprint) affinity(deployment string, weight float64) float64 {
	mac := hmac.New(sha256.New, f[:])
	mac.Write([]byte(deployment))
	digest := binary.BigEndian.Uint64(mac.Sum(nil)[:8])
	u := (float64(digest>>11) + 0.5) / (1 << 53)
	return -weight / math.Log(u)
}

// evenWeight is every rung's weight until deployments have one of their own.
const evenWeight = 1

// placed orders the rungs of a plan for one request: within their stage and never
// across a reference (N19). exhausted tells the rungs whose accounts have no funds.
func placed(rungs []Rung, req Request, exhausted func(*Rung) bool) []Rung {
	return issuerFirst(fundedFirst(byConversation(rungs, req), exhausted), req.Issuer)
}

// issuerFirst brings the deployment that sealed the request's reasoning to the front
// of its stage (K4).
func issuerFirst(rungs []Rung, issuer string) []Rung {
	at := slices.IndexFunc(rungs, func(r Rung) bool { return issuer != "" && r.Deployment != nil && r.Deployment.ID == issuer })
	from := at
	for from > 0 && rungs[from-1].Stage == rungs[at].Stage {
		from--
	}
	if at == from {
		return rungs
	}
	ordered := slices.Clone(rungs)
	copy(ordered[from+1:at+1], rungs[from:at])
	ordered[from] = rungs[at]
	return ordered
}

// byConversation orders the rungs of every stage that keeps conversations together
// (T3).
func byConversation(rungs []Rung, req Request) []Rung {
	if !slices.ContainsFunc(rungs, func(r Rung) bool { return r.Policy.FailoverMode == catalog.MaximizeCacheAffinity }) {
		return rungs
	}
	f := NewFingerprint(req.Admitted.Tenant, req.Admitted.Key, req.Conversation)
	ordered := slices.Clone(rungs)
	for from := 0; from < len(ordered); {
		to := from + 1
		for to < len(ordered) && ordered[to].Stage == ordered[from].Stage {
			to++
		}
		if ordered[from].Policy.FailoverMode == catalog.MaximizeCacheAffinity {
			byAffinity(ordered[from:to], f)
		}
		from = to
	}
	return ordered
}

func byAffinity(stage []Rung, f Fingerprint) {
	score := func(r Rung) float64 {
		if r.Deployment == nil {
			return 0
		}
		return f.affinity(r.Deployment.ID, evenWeight)
	}
	slices.SortStableFunc(stage, func(a, b Rung) int {
		switch sa, sb := score(a), score(b); {
		case sa > sb:
			return -1
		case sa < sb:
			return 1
		}
		return 0
	})
}

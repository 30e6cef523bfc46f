package health

import (
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// aboutFunds completes what an outcome says of the account behind a key. An
// organization's own account is its own affair: its routes are never put behind the
// operator's (W6).
func (r *Registry) aboutFunds(s *circuit.Signal, rung *walk.Rung, credential string) {
	switch {
	case s.Effect != circuit.OutOfFunds:
	case rung.Owner == request.Workspace:
		s.Effect = circuit.Neutral
	default:
		s.SecretID = r.secretID(rung.Provider, credential)
	}
}

func (r *Registry) secretID(p *catalog.Provider, keyID string) string {
	if r.config.SecretID == nil {
		return ""
	}
	return r.config.SecretID(p, keyID)
}

// noteExhausted moves the time up to which accounts have to be asked about.
func (r *Registry) noteExhausted(until time.Time) {
	if until.IsZero() {
		return
	}
	for {
		old := r.exhausted.Load()
		if until.UnixNano() <= old || r.exhausted.CompareAndSwap(old, until.UnixNano()) {
			return
		}
	}
}

// Exhausted implements walk.World: the account behind every key that this worker holds
// is known to be out of funds (H12). While one key has funds, or is not known not to,
// the route keeps its place and its pool finds that key.
func (r *Registry) Exhausted(rung *walk.Rung, now time.Time) bool {
	if now.UnixNano() >= r.exhausted.Load() {
		return false
	}
	creds := r.Credentials(rung.Provider)
	for _, c := range creds {
		if !r.outOfFunds(rung.Provider, c.ID, now) {
			return false
		}
	}
	return len(creds) > 0
}

func (r *Registry) outOfFunds(p *catalog.Provider, keyID string, now time.Time) bool {
	e := r.credential(p, keyID)
	if e == nil {
		return false
	}
	secret := r.secretID(p, keyID)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.circuit.Exhausted(secret, now)
}

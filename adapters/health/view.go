package health

import (
	"context"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
)

// Circuit is one circuit as GET /v1/health lists it.
type Circuit struct {
	Kind     circuit.Kind  `json:"kind"`
	Provider string        `json:"provider"`
	Model    string        `json:"model"`
	State    circuit.State `json:"state"`
	Until    time.Time     `json:"until"`
	Cause    string        `json:"cause"`
	// Masked hides the provider from callers, never from the operator (X1).
	Masked bool `json:"-"`
	// Tenant is whose connection it is about; empty for what all share.
	Tenant string `json:"-"`
}

// Open lists the circuits that are not closed, in a fixed order (H9).
func (r *Registry) Open(now time.Time) []Circuit {
	var views []circuit.View
	for _, e := range r.entries() {
		e.mu.Lock()
		v, ok := circuit.ViewOf(e.name, &e.circuit, now)
		e.mu.Unlock()
		if ok {
			views = append(views, v)
		}
	}
	circuit.SortViews(views)
	list := make([]Circuit, len(views))
	for i, v := range views {
		list[i] = Circuit{
			Kind: v.Kind, Provider: v.Provider, Model: v.Model, State: v.State,
			Until: v.Until.UTC(), Cause: string(v.Cause.Class), Masked: v.Masked, Tenant: tenantOf(v.Credential),
		}
	}
	return list
}

// tenantOf reads the key of a connection, TENANT/CONNECTION.
func tenantOf(credential string) string {
	tenant, _, own := strings.Cut(credential, "/")
	if !own {
		return ""
	}
	return tenant
}

// entries are all circuits at one moment. Looking at each of them happens without
// the registry's lock.
func (r *Registry) entries() []*entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	entries := make([]*entry, 0, len(r.circuits))
	for _, e := range r.circuits {
		entries = append(entries, e)
	}
	return entries
}

const (
	// recallWithin is how far back a worker's memory goes when it starts: the longest
	// open_for that configuration allows, and four times the longest throttle window.
	recallWithin = 24 * time.Hour
	// recallRows bounds it by what is read in a moment. The newest come first, and of a
	// circuit only its last transitions matter.
	recallRows = 10_000
)

// Memory is where the log keeps what circuits said.
type Memory interface {
	RecentCircuits(ctx context.Context, within time.Duration, limit int) ([]eventstore.Recorded, error)
}

// Recall restores what workers lately knew, this one before its restart among them.
// Call it before the first claim. A worker that cannot remember begins with closed
// circuits and finds out for itself.
func (r *Registry) Recall(ctx context.Context, log Memory, now time.Time) error {
	recorded, err := log.RecentCircuits(ctx, recallWithin, recallRows)
	if err == nil {
		r.Restore(recorded, now)
	}
	return err
}

// Restore takes over what the log tells of circuits that are still open, so that a
// restart does not forget them. Call it before the first claim, with the events of
// the circuits' streams in the log's order. What this release cannot read is passed
// over: no money hangs on it (C15).
func (r *Registry) Restore(recorded []eventstore.Recorded, now time.Time) {
	var h circuit.History
	for _, rec := range recorded {
		if e, err := event.Decode(rec.Type, rec.Version, rec.Data); err == nil {
			h.Apply(rec.Meta.Worker, e)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range h.Remembered(now) {
		e := r.entry(m.Name)
		e.mu.Lock()
		e.circuit = m.Circuit
		e.settle(now)
		r.noteExhausted(m.Circuit.ExhaustedUntil())
		e.mu.Unlock()
	}
}

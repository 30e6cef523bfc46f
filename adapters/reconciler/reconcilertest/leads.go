// Package reconcilertest keeps leads in memory, for tests.
package reconcilertest

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/adapters/reconciler"
)

// Leads is one lead for all that share it. Its zero value is free.
type Leads struct {
	mu       sync.Mutex
	leader   uuid.UUID
	progress map[uuid.UUID]reconciler.Progress
}

// Take implements reconciler.Leads.
func (l *Leads) Take(_ context.Context, id uuid.UUID) (reconciler.Lead, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leader != uuid.Nil {
		return nil, reconciler.ErrRunning
	}
	l.leader = id
	return &lead{l, id}, nil
}

// Leader implements reconciler.Leads.
func (l *Leads) Leader(context.Context) (uuid.UUID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leader, nil
}

// Progress implements reconciler.Leads.
func (l *Leads) Progress(_ context.Context, id uuid.UUID) (*reconciler.Progress, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := l.progress[id]; ok {
		return &p, nil
	}
	return nil, nil
}

// Kill takes the lead from who has it, as the end of its worker does.
func (l *Leads) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leader = uuid.Nil
}

type lead struct {
	*Leads
	id uuid.UUID
}

// Report implements reconciler.Lead.
func (l *lead) Report(_ context.Context, p reconciler.Progress) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leader != l.id {
		return reconciler.ErrLeadLost
	}
	if l.progress == nil {
		l.progress = map[uuid.UUID]reconciler.Progress{}
	}
	l.progress[l.id] = p
	return nil
}

// Release implements reconciler.Lead.
func (l *lead) Release(context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leader == l.id {
		l.leader = uuid.Nil
	}
}

package adminapi

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/views"
)

// rebuildStatus is the last rebuild that this worker was asked for.
type rebuildStatus struct {
	Projection string     `json:"projection"`
	State      string     `json:"state"` // running, done or failed
	Done       int64      `json:"done_events"`
	Total      int64      `json:"total_events"`
	StartedAt  time.Time  `json:"started_at"`
	EndedAt    *time.Time `json:"ended_at"`
}

// rebuilds does one rebuild at a time, behind requests: a rebuild reads the whole
// log, and two of them would only slow each other and everybody else down.
type rebuilds struct {
	rebuild func(ctx context.Context, name string, progress func(projections.Progress)) error
	now     func() time.Time
	// asked holds the one that was accepted and has not begun.
	asked chan string

	mu   sync.Mutex
	last *rebuildStatus
}

func newRebuilds(rebuild func(context.Context, string, func(projections.Progress)) error, now func() time.Time) *rebuilds {
	return &rebuilds{rebuild: rebuild, now: now, asked: make(chan string, 1)}
}

// start accepts a rebuild, or reports false while one is running.
func (r *rebuilds) start(name string) (rebuildStatus, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil && r.last.State == "running" {
		return *r.last, false
	}
	r.last = &rebuildStatus{Projection: name, State: "running", StartedAt: r.now().UTC()}
	r.asked <- name // never waits: nothing is running, so it is empty
	return *r.last, true
}

func (r *rebuilds) status() *rebuildStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		return nil
	}
	last := *r.last
	return &last
}

func (r *rebuilds) update(change func(*rebuildStatus)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r.last)
}

func (r *rebuilds) run(ctx context.Context, logger *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-r.asked:
			err := r.rebuild(ctx, name, func(p projections.Progress) {
				r.update(func(s *rebuildStatus) { s.Done, s.Total = p.Done, p.Total })
			})
			if err != nil {
				logger.Error("rebuild failed", "projection", name, "error", err)
			}
			r.update(func(s *rebuildStatus) {
				ended := r.now().UTC()
				if s.State, s.EndedAt = "done", &ended; err != nil {
					s.State = "failed"
				}
			})
		}
	}
}

// startRebuild accepts a rebuild and answers at once; GET projections tells how far
// it is.
func (a *API) startRebuild(_ context.Context, c *call) *edge.Reply {
	name := c.Params["name"]
	if !slices.Contains(views.Names(), name) {
		return fail(http.StatusNotFound, codeNotFound, "There is no such projection; there are "+strings.Join(views.Names(), ", ")+".").reply()
	}
	status, accepted := a.rebuilds.start(name)
	if !accepted {
		return fail(http.StatusConflict, codeBusy, "A rebuild of "+status.Projection+" is running; one runs at a time.").reply()
	}
	a.Logger.Info("rebuild asked for", "projection", name, "actor", c.by.Actor)
	return document(http.StatusAccepted, status)
}

// getProjections tells how far each read model is behind the log, and about the last
// rebuild of this worker.
func (a *API) getProjections(ctx context.Context, _ *call) *edge.Reply {
	all, err := a.Projections.Status(ctx)
	if err != nil {
		return a.refuse(err)
	}
	if all == nil {
		all = []projections.Status{}
	}
	return document(http.StatusOK, struct {
		Data    []projections.Status `json:"data"`
		Rebuild *rebuildStatus       `json:"rebuild"`
	}{all, a.rebuilds.status()})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-gateway/sluice/adapters/http/admin"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/migrations"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

const (
	// probeEvery and probeTimeout are how soon an unreachable store shows.
	probeEvery   = 2 * time.Second
	probeTimeout = time.Second
	// schemaEvery is how often the database's schema is compared (O11): it changes
	// when somebody migrates, a few times a year.
	schemaEvery = 30 * time.Second
	// catalogStale is two polls missed.
	catalogStale = 2 * live.Poll
)

// probe asks the store how it is, so that a readiness probe never has to wait for
// a database.
type probe struct {
	db     database
	log    *eventstore.Store
	store  atomic.Pointer[admin.Problem]
	schema atomic.Pointer[admin.Problem]
}

func (p *probe) run(ctx context.Context) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	checked := time.Now() // openWorker has
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			p.store.Store(p.askStore(ctx))
			if now.Sub(checked) >= schemaEvery {
				checked = now
				p.schema.Store(p.askSchema(ctx))
			}
		}
	}
}

func (p *probe) askStore(ctx context.Context) *admin.Problem {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := p.log.Head(ctx, 0); err != nil {
		return &admin.Problem{Check: "store", Detail: "not reachable"}
	}
	return nil
}

// askSchema compares the schema with this build's. A newer one is none of our
// business: migrations only add, and old workers serve through them (O6).
func (p *probe) askSchema(ctx context.Context) *admin.Problem {
	err := p.db.check(ctx)
	_, newer := errors.AsType[*migrations.NewerError](err)
	if err == nil || newer || errors.Is(err, migrations.ErrUnreachable) {
		return nil
	}
	return &admin.Problem{Check: "schema", Detail: inWords(err)}
}

// problems are the reasons not to send requests here (O2, C11).
func (w *worker) problems(context.Context) []admin.Problem {
	var list []admin.Problem
	if w.draining.Load() {
		list = append(list, admin.Problem{Check: "draining", Detail: "the worker is stopping"})
	}
	switch status := w.catalog.Status(); {
	case w.catalog.Current() == nil:
		list = append(list, admin.Problem{Check: "catalog", Detail: "not read yet"})
	case status.Age > catalogStale:
		list = append(list, admin.Problem{Check: "catalog", Detail: fmt.Sprintf("last read %s ago", status.Age.Round(time.Second))})
	}
	for _, problem := range []*admin.Problem{w.probe.store.Load(), w.probe.schema.Load()} {
		if problem != nil {
			list = append(list, *problem)
		}
	}
	return list
}

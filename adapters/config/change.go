package config

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

// changeAttempts bounds how often a change that was overtaken is decided again.
// Each time somebody else's change was written, so only a crowd can exhaust it.
const changeAttempts = 8

// InvalidError refuses a change: the catalog that it would make does not hold
// together. Nothing was written.
type InvalidError struct {
	Problems []catalog.Finding
	// More problems were found than are listed.
	More int
}

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more problems", e.More))
	}
	return strings.Join(lines, "; ")
}

// Change decides an edit on the newest configuration and writes it, all or
// nothing. decide gets the state, to compare revisions with, and says what the
// configuration shall be; it is called again when somebody else's change came
// first, so an edit of another object goes through and one of the same object is
// refused by decide itself, which then sees the new revision (C3).
//
// The error is decide's own, an *InvalidError, a *StaleError after changeAttempts,
// or the log's. The plan tells what was written.
func Change(ctx context.Context, log Log, worker *live.Live, by eventstore.Meta, now time.Time,
	decide func(*catalog.State) (catalog.Objects, error),
) (Plan, error) {
	for attempt := 1; ; attempt++ {
		plan, err := planChange(ctx, worker, decide)
		if err != nil {
			return Plan{}, err
		}
		err = Apply(ctx, log, plan, by, now)
		if _, overtaken := errors.AsType[*StaleError](err); overtaken && attempt < changeAttempts {
			continue
		}
		return plan, err
	}
}

func planChange(ctx context.Context, worker *live.Live, decide func(*catalog.State) (catalog.Objects, error)) (plan Plan, err error) {
	err = worker.Read(ctx, func(state *catalog.State) error {
		want, err := decide(state)
		if err != nil {
			return err
		}
		want = want.Canonical()
		if problems := catalog.NewFindings(state.Objects(), want); len(problems) > 0 {
			kept := problems[:min(len(problems), maxProblems)]
			return &InvalidError{Problems: kept, More: len(problems) - len(kept)}
		}
		plan = Diff(state, want)
		return nil
	})
	return plan, err
}

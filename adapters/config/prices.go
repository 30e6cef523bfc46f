package config

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

// CorrectionError refuses a price correction with everything that is wrong with it.
// Nothing was written.
type CorrectionError struct{ Problems []catalog.Problem }

func (e *CorrectionError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = fmt.Sprintf("%s %s", p.Path, p.Reason)
	}
	return strings.Join(lines, "; ")
}

// CorrectPrice writes what a deployment's rates truly were (M15) and returns the
// correction's position in the log, which is its name in the ledger. No bill changes
// before the bills are rebuilt. A deployment that was removed can be corrected: its
// attempts are still on bills. The error is a *CorrectionError, or an *UnknownError for
// a deployment that never was.
func CorrectPrice(ctx context.Context, log Log, c catalog.PriceCorrected, by eventstore.Meta, now time.Time) (position int64, err error) {
	c = c.Canonical()
	if problems := c.Validate(now); len(problems) > 0 {
		return 0, &CorrectionError{Problems: problems}
	}
	state, err := live.Read(ctx, log)
	if err != nil {
		return 0, err
	}
	stream := catalog.ObjectID{Kind: catalog.KindDeployment, Name: c.Deployment}.Stream()
	if state.Revision(stream) == 0 {
		return 0, &UnknownError{Kind: "deployment", ID: c.Deployment}
	}
	// Whatever the deployment's revision is: no other edit of it makes the past different.
	results, err := log.AppendAll(ctx, []eventstore.Append{write(stream, eventstore.AnyVersion, by, now, c)})
	if err != nil {
		return 0, err
	}
	return results[0].Position, nil
}

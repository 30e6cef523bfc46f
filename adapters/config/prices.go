package config

import (
	"context"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

// CorrectPrice writes what a deployment's rates truly were (M15) and returns the
// correction's position in the log, which is its name in the ledger. No bill changes
// before the bills are rebuilt. A deployment that was removed can be corrected: its
// attempts are still on bills. The error is an *InvalidError, or an *UnknownError for a
// deployment that never was.
func CorrectPrice(ctx context.Context, log Log, c catalog.PriceCorrected, by eventstore.Meta, now time.Time) (position int64, err error) {
	c = c.Canonical()
	id := catalog.ObjectID{Kind: catalog.KindDeployment, Name: c.Deployment}
	if problems := c.Validate(now); len(problems) > 0 {
		found := make([]catalog.Finding, len(problems))
		for i, p := range problems {
			found[i] = catalog.Finding{Object: id.String(), Field: p.Path, Reason: p.Reason}
		}
		return 0, &InvalidError{Problems: found}
	}
	state, err := live.Read(ctx, log)
	if err != nil {
		return 0, err
	}
	if state.Revision(id.Stream()) == 0 {
		return 0, &UnknownError{Kind: "deployment", ID: c.Deployment}
	}
	// Whatever the deployment's revision is: no other edit of it makes the past different.
	results, err := log.AppendAll(ctx, []eventstore.Append{write(id.Stream(), eventstore.AnyVersion, by, now, c)})
	if err != nil {
		return 0, err
	}
	return results[0].Position, nil
}

// PriceCorrection is a correction that was written.
type PriceCorrection struct {
	// Position names it in the ledger.
	Position int64     `json:"position"`
	At       time.Time `json:"at"`
	Actor    string    `json:"actor"`
	catalog.PriceCorrected
}

// PriceCorrections are those of one deployment, oldest first.
func PriceCorrections(ctx context.Context, log StreamLog, deployment string) ([]PriceCorrection, error) {
	recorded, err := readStream(ctx, log, catalog.ObjectID{Kind: catalog.KindDeployment, Name: deployment}.Stream())
	if err != nil {
		return nil, err
	}
	list := []PriceCorrection{}
	for _, rec := range recorded {
		e, err := event.Decode(rec.Type, rec.Version, rec.Data)
		if c, ok := e.(catalog.PriceCorrected); err == nil && ok {
			list = append(list, PriceCorrection{Position: rec.Position, At: rec.RecordedAt.UTC(), Actor: rec.Meta.Actor, PriceCorrected: c})
		}
	}
	return list, nil
}

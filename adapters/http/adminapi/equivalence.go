package adminapi

import (
	"context"
	"net/http"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// listChecks is GET models/{id}/equivalence-checks: the evidence of every check of the
// model's pool, by whom and when, oldest first (N24). There is no POST: a check calls
// providers for money, and only an operator at a command line starts one.
func (a *API) listChecks(ctx context.Context, c *call) *edge.Reply {
	from, limit, refused := paging(c)
	if refused != nil {
		return refused.reply()
	}
	id := catalog.ObjectID{Kind: catalog.KindModel, Name: c.Params["id"]}
	err := a.Catalog.Read(ctx, func(state *catalog.State) error {
		if state.RevisionOf(id) == 0 {
			return notFound(id.String(), 0)
		}
		return nil
	})
	if err != nil {
		return a.refuse(err)
	}
	all, err := config.EquivalenceChecks(ctx, a.Log, id.Name)
	if err != nil {
		return a.refuse(err)
	}
	return document(http.StatusOK, pageOf(all, from, limit))
}

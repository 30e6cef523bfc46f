package poolcheck

import (
	"fmt"
	"slices"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// Target is one deployment of a pool and how it is reached.
type Target struct {
	Deployment catalog.Deployment
	Provider   catalog.Provider
}

// Pool is what a check asks: the deployments that a model's chain names itself, and
// those that are to join them. A reference to another model is another pool.
type Pool struct {
	Model   catalog.Model
	Targets []Target
}

// PoolError is a pool that cannot be checked, in words.
type PoolError struct{ Reason string }

func (e *PoolError) Error() string { return e.Reason }

// PoolOf is a model's pool with more deployments behind it: a chain with two of them
// cannot be saved before it is certified (N15), so what a check is to show has to be
// asked before it is configured. The error is a *PoolError.
func PoolOf(o catalog.Objects, model string, with []string) (Pool, error) {
	i := slices.IndexFunc(o.Models, func(m catalog.Model) bool { return m.Slug == model })
	if i < 0 {
		return Pool{}, &PoolError{fmt.Sprintf("there is no model %s", model)}
	}
	pool := Pool{Model: o.Models[i]}
	ids := pool.Model.Pool()
	for _, id := range with {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		d := slices.IndexFunc(o.Deployments, func(d catalog.Deployment) bool { return d.ID == id })
		if d < 0 {
			return Pool{}, &PoolError{fmt.Sprintf("there is no deployment %s", id)}
		}
		target := Target{Deployment: o.Deployments[d]}
		p := slices.IndexFunc(o.Providers, func(p catalog.Provider) bool { return p.ID == target.Deployment.Provider })
		if p < 0 {
			return Pool{}, &PoolError{fmt.Sprintf("deployment %s has no provider %s", id, target.Deployment.Provider)}
		}
		target.Provider = o.Providers[p]
		pool.Targets = append(pool.Targets, target)
	}
	switch n := len(pool.Targets); {
	case n < 2:
		return Pool{}, &PoolError{fmt.Sprintf("model %s has %d deployment: there is nothing to compare; name those that are to join it with --with", model, n)}
	case n > catalog.MaxRungs:
		return Pool{}, &PoolError{fmt.Sprintf("a pool has at most %d deployments", catalog.MaxRungs)}
	}
	return pool, nil
}

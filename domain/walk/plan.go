package walk

import (
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/request"
)

// Rungs lays a plan out in the order in which the walk looks at it.
func Rungs(p catalog.Plan) []Rung {
	var rungs []Rung
	for i, stage := range p.Stages {
		for _, c := range stage.Rungs {
			owner := request.Operator
			if c.Rung.Connection != "" {
				owner = request.Workspace
			}
			rungs = append(rungs, Rung{
				Index: c.Index, Stage: i, Model: stage.Model.Slug, Root: stage.Model.Slug == p.CanonicalModel,
				ExactModel: stage.Model.ExactModel,
				Unresolved: request.SkipReason(c.Skip), Deployment: c.Deployment, Provider: c.Provider,
				Policy: stage.Policy, Owner: owner, Surcharge: c.Surcharge,
				Position: stage.Position, Referred: stage.Referred, Override: stage.Override,
			})
		}
	}
	return rungs
}

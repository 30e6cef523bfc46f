package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/config/configtest"
	"github.com/sluice-gateway/sluice/domain/catalog"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

// BenchmarkChangeOfALargeCatalog edits one price among 10,000 deployments, 10,000
// models and 2,000 organizations: every edit judges the whole.
func BenchmarkChangeOfALargeCatalog(b *testing.B) {
	var text strings.Builder
	text.WriteString("version: 1\nproviders: [{id: p, protocol: openai, base_url: \"https://p.test/v1\"}]\ndeployments:\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "  - {id: d%d, provider: p, upstream_model: m, prices: {input: \"1\", output: \"2\"}}\n", i)
	}
	text.WriteString("models:\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "  - {slug: m%d, exact_model: m%d, chain: [{deployment: d%d}]}\n", i, i, i)
	}
	text.WriteString("tenants:\n")
	for i := range 2_000 {
		fmt.Fprintf(&text, "  - {id: t%d}\n", i)
	}
	log := configtest.NewLog()
	apply(b, log, mustLoad(b, text.String()))
	worker := live.New(log)
	n := 0
	for b.Loop() {
		n++
		_, err := config.Change(b.Context(), log, worker, operator, testTime, func(s *catalog.State) (catalog.Objects, error) {
			objects := s.Objects()
			value, _ := objects.Find(catalog.ObjectID{Kind: catalog.KindDeployment, Name: "d77"})
			d, _ := value.(catalog.Deployment)
			d.Timeouts.Connect = catalog.Duration(n)
			return objects.With(d)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

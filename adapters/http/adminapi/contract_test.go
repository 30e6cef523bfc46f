package adminapi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/http/adminapi"
)

// contract are the admin API's addresses with the letters of their methods: Get, Put,
// patch (A), Delete, pOst.
const contract = `
tenants/{id} GPAD
tenants/{tenant}/aliases/{id} GPAD
tenants/{tenant}/routing-rules GP
tenants/{tenant}/keys GPO
tenants/{tenant}/budgets GP
tenants/{tenant}/connections GP
tenants/{tenant}/chains/{id} GPAD
tenants/{tenant}/promotions GP
providers/{id} GPAD
providers/{id}/credentials G
models/{id} GPAD
models/{id}/chain GPAD
models/{id}/policy GPAD
deployments/{id} GPAD
deployments/{id}/prices GPAD
deployments/{id}/price-corrections GO
classes/{id}/chain GPAD
tiers/{id} GPAD
snapshot G
circuits G
requests G
requests/{id}/trail G
projections G
events G
projections/{name}/rebuild O
`

var methods = map[rune]string{'G': "GET", 'P': "PUT", 'A': "PATCH", 'D': "DELETE", 'O': "POST"}

// TestEveryAddressOfTheContract_C3: what the contract lists is there.
//
// Rules: C3.
func TestEveryAddressOfTheContract_C3(t *testing.T) {
	have := adminapi.New(adminapi.Config{}).Routes()
	for line := range strings.Lines(strings.TrimSpace(contract)) {
		pattern, letters, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, letter := range letters {
			if !slices.Contains(have, [2]string{methods[letter], "/" + pattern}) {
				t.Errorf("%s /%s is not there", methods[letter], pattern)
			}
		}
	}
}

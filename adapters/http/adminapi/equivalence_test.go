package adminapi_test

import (
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/domain/equivalence"
	"github.com/sluice-gateway/sluice/eventstore"
)

// What checks have found can be read, with who ran them, and nothing starts one from
// here.
//
// Rules: N24, Z7.
func TestEquivalenceChecksAreRead_N24_Z7(t *testing.T) {
	s := start(t)
	const path = "/models/lab%2Fa/equivalence-checks"
	check(t, do(t, s, 200, "GET", path, "", ""), "data", "[]")
	evidence := equivalence.Evidence{Format: 1, Model: "lab/a", ExactModel: "a", Result: equivalence.Failed, Attempts: 7}
	hash, err := config.StoreEvidence(t.Context(), s.Log, evidence, eventstore.Meta{Actor: "cli:ada"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	listed := string(do(t, s, 200, "GET", path, "", "").Body)
	for _, want := range []string{`"hash":"` + hash + `"`, `"actor":"cli:ada"`, `"result":"failed"`, `"attempts":7`} {
		mentions(t, listed, want)
	}
	// The model is what it was.
	check(t, do(t, s, 200, "GET", "/models/lab%2Fa", "", ""), "equivalence.evidence", `"sha256:00"`)
	do(t, s, 404, "GET", "/models/nobody/equivalence-checks", "", "")
	do(t, s, 405, "POST", path, "", "{}")
}

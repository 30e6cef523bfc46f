package main

import (
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

const priced = `version: 1
providers: [{id: p, protocol: openai, base_url: "http://127.0.0.1:9/v1"}]
deployments: [{id: d, provider: p, upstream_model: m, prices: {input: "1", output: "2"}}]
models: [{slug: m, exact_model: m, chain: [{deployment: d}]}]
`

// History says who changed what; a revert is a new event that restores it, and what
// cannot hold any more is refused whole.
//
// Rules: C1, C2.
func TestHistoryAndRevert_C1(t *testing.T) {
	useDatabase(t)
	must(t, "apply", "-f", writeFile(t, "a.yaml", priced))
	must(t, "apply", "-f", writeFile(t, "b.yaml", strings.Replace(priced, `output: "2"`, `output: "3"`, 1)))

	out := must(t, "history", "deployment/d")
	for _, says := range []string{"cli:", "price_set", "- prices.output: 2", "+ prices.output: 3", "\n3  "} {
		if !strings.Contains(out, says) {
			t.Errorf("history does not say %q:\n%s", says, out)
		}
	}
	if out := must(t, "revert", "deployment/d", "--to", "2"); !strings.Contains(out, "~ deployment d") {
		t.Errorf("revert says %q", out)
	}
	if out := must(t, "export"); !strings.Contains(out, `output: "2"`) {
		t.Errorf("not reverted:\n%s", out)
	}
	got := decode[struct{ Data []changeOf }](t, must(t, "history", "deployment/d", "--output", "json"))
	if n := len(got.Data); n != 4 || got.Data[3].Revision != 4 || got.Data[3].Event != "price_set" || !strings.HasPrefix(got.Data[3].Actor, "cli:") {
		t.Errorf("a revert is no new event: %+v", got.Data)
	}
	// Revision 1 was written at once with its prices: nobody has seen it without.
	if out := must(t, "revert", "deployment/d", "--to", "1"); !strings.Contains(out, "nothing to change") {
		t.Errorf("a revert to a part of what was written says %q", out)
	}
	if again := decode[reverted](t, must(t, "revert", "deployment/d", "--to", "4", "--output", "json")); len(again.Changes) != 0 || again.Revision != 4 {
		t.Errorf("reverting to what is there wrote %+v", again)
	}

	must(t, "apply", "-f", writeFile(t, "c.yaml", "version: 1\n"))
	refused(t, exitFailed, "deployment \"d\" does not exist", "revert", "model/m", "--to", "1")
	must(t, "revert", "provider/p", "--to", "1")
	must(t, "revert", "deployment/d", "--to", "4")
	must(t, "revert", "model/m", "--to", "1")
	if out := must(t, "export"); !strings.Contains(out, "{deployment: d}") {
		t.Errorf("the model came back without its chain:\n%s", out)
	}

	refused(t, exitUsage, "names no object", "history", "nonsense")
	refused(t, exitUsage, "--to REVISION", "revert", "model/m")
	refused(t, exitFailed, "has no revision 99", "revert", "model/m", "--to", "99")
	refused(t, exitFailed, "never been", "history", "tenant/nobody")
}

// Rules: C1.
func TestEveryKindOfObjectIsNamedInTheHelp_C1(t *testing.T) {
	for _, kind := range catalog.Kinds() {
		if !strings.Contains(objectHelp, " "+string(kind)+"/") && !strings.Contains(objectHelp, "\n"+string(kind)+"/") {
			t.Errorf("the help does not say how a %s is named", kind)
		}
	}
}

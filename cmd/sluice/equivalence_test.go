package main

import (
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/domain/equivalence"
)

// twins is a model with one deployment, and a second one that is to join it.
func twins(base, chain string) string {
	return `version: 1
providers:
  - {id: one, protocol: openai, base_url: "` + base + `/v1", keys: [{id: k1, env: SLUICE_TEST_UP_KEY}]}
  - {id: two, protocol: anthropic, base_url: "` + base + `", keys: [{id: k1, env: SLUICE_TEST_UP_KEY}]}
deployments:
  - {id: m@one, provider: one, upstream_model: upstream-1, prices: {input: "1.00", output: "2.00"}}
  - {id: m@two, provider: two, upstream_model: upstream-2, prices: {input: "1.00", output: "2.00"}}
models:
  - slug: m
    exact_model: m
` + chain + `
`
}

const (
	alone    = `    chain: [{deployment: m@one}]`
	together = `    chain: [{deployment: m@one}, {deployment: m@two}]`
)

// answering makes both deployments answer the whole set, once for each outcome of the
// second.
func answering(t *testing.T, fake *fakeprovider.Server, second ...string) {
	t.Helper()
	good := []string{"ok", "ok", "ok", "tools:2", "words:64", "ok"}
	if len(second) == 0 {
		second = good
	}
	err := fake.SetScript(fakeprovider.Script{Rules: []fakeprovider.Rule{
		{Model: "upstream-1", Outcomes: good, Repeat: true}, {Model: "upstream-2", Outcomes: second, Repeat: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	fake.Reset()
}

// A second deployment is compared before it joins, the evidence is stored, cited by a
// certification, shown in the history, and the chain of both is then applied without a
// warning.
//
// Rules: N24, N15.
func TestCheckedCertifiedAndApplied_N24_N15(t *testing.T) {
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	useDatabase(t)
	t.Setenv("SLUICE_TEST_UP_KEY", "sk-up")
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", twins(fake.URL(), alone)))
	refused(t, exitFailed, "nothing to compare", "equivalence", "check", "m")
	if r := sluice(t, "apply", "-f", writeFile(t, "sluice.yaml", twins(fake.URL(), together))); r.code != exitFailed || !strings.Contains(r.stderr, "certification") {
		t.Errorf("an uncertified pool: exit %d, %s", r.code, r.stderr)
	}
	answering(t, fake)
	planned := must(t, "equivalence", "check", "m", "--with", "m@two", "--dry-run")
	if !strings.Contains(planned, "12 calls, at most $") || fake.Ledger().Total != 0 {
		t.Errorf("dry run made %d calls and says\n%s", fake.Ledger().Total, planned)
	}
	got := decode[checked](t, must(t, "equivalence", "check", "m", "--with", "m@two", "--output", "json"))
	if got.Evidence.Result != equivalence.Passed || got.Hash != got.Evidence.Hash() || got.Evidence.Attempts != 12 || fake.Ledger().Total != 12 {
		t.Fatalf("%d calls, %+v", fake.Ledger().Total, got)
	}
	if list := must(t, "equivalence", "list", "m"); !strings.Contains(list, "m@one, m@two") || !strings.Contains(list, got.Hash) {
		t.Errorf("list says %s", list)
	}
	must(t, "equivalence", "certify", "m", "--by", "ada", "--evidence", got.Hash)
	if history := must(t, "history", "model/m"); !strings.Contains(history, "equivalence_checked\n    evidence "+got.Hash) || !strings.Contains(history, "+ equivalence.certified_by: ada") {
		t.Errorf("history says %s", history)
	}
	certified := "    equivalence: {certified_by: ada, on: \"2026-11-01\", evidence: \"" + got.Hash + "\"}\n" + together
	applied := sluice(t, "apply", "-f", writeFile(t, "sluice.yaml", twins(fake.URL(), certified)))
	if applied.code != exitDone || strings.Contains(applied.stderr, "warning") {
		t.Errorf("exit %d, %s", applied.code, applied.stderr)
	}
	// From here on the chain names both, and another check needs no --with.
	text := must(t, "equivalence", "check", "m")
	for _, want := range []string{"CASE ", "m@two of two: passed", "m: passed; 12 calls, $", "evidence sha256:"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table does not say %q:\n%s", want, text)
		}
	}
}

// What differs is printed, stored and no reason to certify: only on somebody's word.
//
// Rules: N24, N15, Q1.
func TestDifferencesAreNotCertified_N24_N15_Q1(t *testing.T) {
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	useDatabase(t)
	t.Setenv("SLUICE_TEST_UP_KEY", "sk-up")
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", twins(fake.URL(), alone)))
	answering(t, fake, "ok+input:130", "ok", "tool+off-schema", "500", "words:64", "ok")
	r := sluice(t, "equivalence", "check", "m", "--with", "m@two")
	for _, want := range []string{
		"input_tokens: ", ", m@one has ", "arguments: others, for get_temperature, not arguments of the tool's schema", "server_error 500", "nothing_to_compare",
		"m@two of two: failed", "m: failed; 12 calls",
	} {
		if r.code != exitFailed || !strings.Contains(r.stdout, want) {
			t.Errorf("exit %d, the table does not say %q:\n%s%s", r.code, want, r.stdout, r.stderr)
		}
	}
	_, hash, _ := strings.Cut(strings.TrimSpace(r.stdout), "evidence ")
	refused(t, exitFailed, "the check that it cites ended as failed (--accept-doubts", "equivalence", "certify", "m", "--by", "ada", "--evidence", hash)
	refused(t, exitFailed, "no check of this installation stored this evidence", "equivalence", "certify", "m", "--by", "ada", "--evidence", "sha256:00")
	if r := sluice(t, "equivalence", "certify", "m", "--by", "ada", "--evidence", hash, "--accept-doubts"); r.code != exitDone || !strings.Contains(r.stderr, "warning: the check that it cites ended as failed") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}

	// A file is taken with what it cites, and with a word about it: it may have been
	// certified elsewhere.
	for evidence, want := range map[string]string{
		hash:                    "line 11: models.equivalence.evidence: the check that it cites ended as failed",
		"sha256:00":             "line 11: models.equivalence.evidence: no check of this installation stored this evidence",
		"comparison of October": "",
	} {
		file := writeFile(t, "sluice.yaml", twins(fake.URL(), "    equivalence: {certified_by: ada, on: \"2026-11-01\", evidence: \""+evidence+"\"}\n"+together))
		r := sluice(t, "apply", "-f", file, "--dry-run")
		if r.code != exitDone || !strings.Contains(r.stderr, want) || (want == "") != !strings.Contains(r.stderr, "warning") {
			t.Errorf("%s: exit %d, %s", evidence, r.code, r.stderr)
		}
		if json := decode[applied](t, must(t, "apply", "-f", file, "--dry-run", "--output", "json")); want != "" && (len(json.Warnings) != 1 || json.Warnings[0] != want) {
			t.Errorf("%s: %+v", evidence, json)
		}
	}
}

// The ceilings hold, a check without a call leaves nothing, and what cannot be meant is
// bad usage.
//
// Rules: N24.
func TestEquivalenceCommandsRefuse_N24(t *testing.T) {
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	useDatabase(t)
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", twins(fake.URL(), alone)))
	answering(t, fake)
	if r := sluice(t, "equivalence", "check", "m", "--with", "m@two"); r.code != exitFailed || !strings.Contains(r.stdout, "credential_missing") || !strings.Contains(r.stdout, "nobody was called, nothing is stored") {
		t.Errorf("without a key: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	t.Setenv("SLUICE_TEST_UP_KEY", "sk-up")
	if r := sluice(t, "equivalence", "check", "m", "--with", "m@two", "--max-usd", "0.000000001"); r.code != exitFailed || !strings.Contains(r.stdout, "max_usd") || fake.Ledger().Total != 0 {
		t.Errorf("with a ceiling of nothing: exit %d, %d calls, %s%s", r.code, fake.Ledger().Total, r.stdout, r.stderr)
	}
	if got := decode[checked](t, sluice(t, "equivalence", "check", "m", "--with", "m@two", "--max-attempts", "3", "--output", "json").stdout); got.Evidence.Result != equivalence.Blocked || fake.Ledger().Total != 3 || got.Hash == "" {
		t.Errorf("with three calls: %d, %+v", fake.Ledger().Total, got)
	}
	if list := decode[struct{ Data []struct{ Hash string } }](t, must(t, "equivalence", "list", "m", "--output", "json")); len(list.Data) != 1 {
		t.Errorf("%d checks are stored, want the one that called", len(list.Data))
	}
	for _, args := range [][]string{
		{"check"},
		{"check", "m", "--max-usd", "0"},
		{"check", "m", "--max-usd", "1001"},
		{"check", "m", "--max-usd", "much"},
		{"check", "m", "--max-usd", "0.0000000001"},
		{"check", "m", "--max-attempts", "0"},
		{"certify", "m", "--evidence", "sha256:00"},
		{"certify", "m", "--by", "ada"},
		{"certify", "m", "--by", "ada", "--evidence", "trust me"},
		{"chekc"},
	} {
		refused(t, exitUsage, "", append([]string{"equivalence"}, args...)...)
	}
	refused(t, exitFailed, "there is no model nobody", "equivalence", "check", "nobody")
	refused(t, exitFailed, `model "nobody" does not exist`, "equivalence", "certify", "nobody", "--by", "ada", "--evidence", "sha256:00")
	refused(t, exitFailed, "there is no deployment nothing", "equivalence", "check", "m", "--with", "nothing")
}

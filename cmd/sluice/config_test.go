package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// acme is a small configuration whose one provider stands at base.
func acme(base string) string {
	return `version: 1
providers:
  - id: up
    protocol: openai
    base_url: ` + base + `
    keys: [{id: k1, env: SLUICE_TEST_UP_KEY}]
deployments:
  - id: m@up
    provider: up
    upstream_model: fake-ok
    capabilities: [chat, tools]
    prices: {input: "1.00", output: "2.00", source: "made up"}
models:
  - {slug: m, exact_model: m, chain: [{deployment: m@up}]}
tenants:
  - id: acme
    budgets: [{scope: organization, limit_usd: "5.00", per: month}]
`
}

const nowhere = "http://127.0.0.1:1/v1"

// C13: the plan is shown, applied as events, and applying again changes nothing;
// the export is the same file.
func TestApplyIsIdempotent_C13(t *testing.T) {
	useDatabase(t)
	file := writeFile(t, "sluice.yaml", acme(nowhere))

	dry := decode[applied](t, must(t, "apply", "-f", file, "--dry-run", "--output", "json"))
	if !dry.DryRun || dry.Created == 0 {
		t.Errorf("dry run: %+v", dry)
	}
	if exported := must(t, "export"); strings.Contains(exported, "acme") {
		t.Errorf("the dry run applied something:\n%s", exported)
	}
	first := decode[applied](t, must(t, "apply", "-f", file, "--output", "json"))
	if first.Created != dry.Created || len(first.Changes) != len(dry.Changes) {
		t.Errorf("planned %+v, did %+v", dry, first)
	}
	if again := must(t, "apply", "-f", file); !strings.Contains(again, "nothing to change") {
		t.Error(again)
	}
	exported := writeFile(t, "exported.yaml", must(t, "export"))
	if again := must(t, "apply", "-f", exported); !strings.Contains(again, "nothing to change") {
		t.Errorf("the export is another configuration: %s", again)
	}
}

// A bad file is refused whole, with line and reason, without asking a database.
//
// Rules: C13.
func TestBadFileAppliesNothing_C13(t *testing.T) {
	for name, c := range map[string]struct{ from, to, says string }{
		"unknown field": {"upstream_model:", "upstream:", `bad.yaml: line 10: deployments[0]: unknown field "upstream"`},
		"dangling":      {"chain: [{deployment: m@up}]", "chain: [{deployment: gone}]", `bad.yaml: line 14: models[0].chain[0].deployment`},
		"not YAML":      {"protocol: openai", "protocol: [openai", "bad.yaml: line "},
		"a secret":      {"env: SLUICE_TEST_UP_KEY", "value: sk-live-123", "a secret never stands in this file"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(acme(nowhere), c.from, c.to, 1)
			setDatabase(t, "")
			r := sluice(t, "apply", "-f", writeFile(t, "bad.yaml", text))
			if r.code != exitFailed || !strings.Contains(r.stderr, c.says) {
				t.Errorf("exit %d: %s", r.code, r.stderr)
			}
			if strings.Contains(r.stderr, "sk-live-123") {
				t.Errorf("repeats the secret: %s", r.stderr)
			}
		})
	}
	t.Run("leaves what is there", func(t *testing.T) {
		useDatabase(t)
		must(t, "apply", "-f", writeFile(t, "good.yaml", acme(nowhere)))
		before := must(t, "export")
		bad := strings.Replace(acme(nowhere), `"5.00"`, `"a lot"`, 1)
		if r := sluice(t, "apply", "-f", writeFile(t, "bad.yaml", bad)); r.code != exitFailed {
			t.Errorf("exit %d", r.code)
		}
		if after := must(t, "export"); after != before {
			t.Errorf("something was applied:\n%s", after)
		}
	})
	t.Run("no file", func(t *testing.T) {
		refused(t, exitFailed, "does not exist", "apply", "-f", filepath.Join(t.TempDir(), "none.yaml"))
	})
}

// Z3: the key is shown once, listed by its prefix, and revoked for good.
func TestKeys_Z3(t *testing.T) {
	useDatabase(t)
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", acme(nowhere)))
	created := decode[map[string]string](t, must(t, "keys", "create", "--tenant", "acme", "--output", "json"))
	id, key := created["id"], created["key"]
	if len(created) != 2 || id == "" || !strings.HasPrefix(key, "sk-sluice-") {
		t.Fatalf("created %v", created)
	}
	type listed struct{ Data []shownKey }
	text := must(t, "keys", "list", "--output", "json")
	list := decode[listed](t, text)
	if len(list.Data) != 1 || list.Data[0].ID != id || list.Data[0].State != "active" || !strings.HasPrefix(key, list.Data[0].Prefix) {
		t.Errorf("listed %s", text)
	}
	if strings.Contains(text, key) || strings.Contains(text, "hash") {
		t.Errorf("the list shows the key or its hash: %s", text)
	}
	must(t, "keys", "revoke", id)
	must(t, "keys", "revoke", id) // changes nothing
	if list = decode[listed](t, must(t, "keys", "list", "--output", "json")); list.Data[0].State != "revoked" {
		t.Errorf("after the revocation: %+v", list)
	}
	if other := must(t, "keys", "list", "--tenant", "other"); strings.Contains(other, id) {
		t.Errorf("another tenant's list: %s", other)
	}
	refused(t, exitFailed, `"nobody" does not exist`, "keys", "create", "--tenant", "nobody")
	refused(t, exitFailed, `"nothing" does not exist`, "keys", "revoke", "nothing")
}

// The key alone goes to stdout, so that KEY=$(sluice keys create ...) works.
func TestKeyIsAloneOnStdout(t *testing.T) {
	useDatabase(t)
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", acme(nowhere)))
	out := must(t, "keys", "create", "--tenant", "acme", "--scope", "read,inference", "--expires", "720h")
	if !strings.HasPrefix(out, "sk-sluice-") || strings.Count(out, "\n") != 1 {
		t.Errorf("stdout is %q", out)
	}
}

// Z7: every change has an actor in the log.
func TestChangesHaveAnActor_Z7(t *testing.T) {
	useDatabase(t)
	must(t, "apply", "-f", writeFile(t, "sluice.yaml", acme(nowhere)))
	must(t, "keys", "create", "--tenant", "acme")
	for _, e := range readLog(t) {
		if !strings.HasPrefix(e.Meta.Actor, "cli:") {
			t.Errorf("%s of %s has actor %q", e.Type, e.Stream, e.Meta.Actor)
		}
	}
}

// The demo's file is a good one.
//
// Rules: O8.
func TestDemoConfiguration_O8(t *testing.T) {
	useDatabase(t)
	path := filepath.Join(t.TempDir(), "demo.yaml")
	if err := os.WriteFile(path, demoYAML, 0o600); err != nil {
		t.Fatal(err)
	}
	if result := decode[applied](t, must(t, "apply", "-f", path, "--output", "json")); len(result.Warnings) > 0 {
		t.Errorf("warnings: %q", result.Warnings)
	}
}

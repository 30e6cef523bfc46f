package config_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

func load(text string) (*config.File, error) {
	return config.Load(strings.NewReader(text), "sluice.yaml")
}

// The whole grammar is read, and what this release only keeps is named (C13).
func TestWholeGrammarIsRead_C13(t *testing.T) {
	text, err := os.ReadFile("testdata/whole.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, err := load(string(text))
	if err != nil {
		t.Fatal(err)
	}
	o := file.Objects
	if len(o.Providers) != 2 || len(o.Deployments) != 3 || len(o.Models) != 2 || len(o.Classes) != 1 || len(o.Tenants) != 1 {
		t.Errorf("read %+v", o)
	}
	d := o.Deployments[1]
	if d.ID != "fable-5@anthropic" || d.Dispatch == nil || *d.Dispatch.FreshSessionSpillFraction != 0.8 ||
		d.Prices.LongContext.Output.String() != "22.5" || d.Context.MaxOutput != 128000 || d.Timeouts.StreamIdle.Or(0).Seconds() != 60 {
		t.Errorf("deployment %+v", d)
	}
	if m := o.Models[1]; m.Equivalence.On != "2026-11-01" || m.Policy.ThrottleRedial.MaxRetries != 3 || len(m.Chain) != 3 {
		t.Errorf("model %+v", m)
	}
	if tenant := o.Tenants[0]; len(tenant.Budgets) != 3 || tenant.Budgets[2].LimitUSD != "500" || tenant.Aliases[0].MinContextWindow != 128000 {
		t.Errorf("tenant %+v", tenant)
	}
	var warned strings.Builder
	for _, w := range file.Warnings {
		fmt.Fprintln(&warned, w)
	}
	for _, part := range []string{"dispatch", "tier"} {
		if !strings.Contains(warned.String(), part) {
			t.Errorf("no warning about %s in\n%s", part, &warned)
		}
	}
	for _, part := range []string{"surcharge_fallback", "retention"} {
		if strings.Contains(warned.String(), part) {
			t.Errorf("a warning about %s, which is off:\n%s", part, &warned)
		}
	}
}

const good = `version: 1
providers:
  - id: p
    protocol: openai
    base_url: http://127.0.0.1:9000/v1
    keys: [{id: k, env: P_KEY}]
deployments:
  - id: d
    provider: p
    upstream_model: m
    prices: {input: "1.00", output: "2"}
models:
  - slug: m
    exact_model: m
    chain: [{deployment: d}]
tenants:
  - id: acme
    budgets:
      - {scope: organization, limit_usd: "5.00", per: month}
`

func TestGoodFileHasNoWarnings(t *testing.T) {
	file, err := load(good)
	if err != nil || len(file.Warnings) > 0 {
		t.Errorf("%v, %v", err, file)
	}
}

// Every way to write a bad file is refused with its line and its reason (C13).
func TestBadFilesAreRefusedWithLineAndReason_C13(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		line           int
		reason         string
	}{
		{"not YAML", "  - id: p\n", "  - id: p: q\n", 3, "not YAML"},
		{"tab", "    protocol: openai", "\tprotocol: openai", 4, "not YAML"},
		{"second document", "    budgets:\n", "    budgets:\n---\n", 19, "second document"},
		{"no version", "version: 1\n", "# nothing\n", 2, "version: must be 1"},
		{"other version", "version: 1", "version: 2", 1, "version: must be 1"},
		{"version as text", "version: 1", `version: "1"`, 1, "must be a whole number, not text"},
		{"unknown section", "tenants:", "customers:", 16, `unknown field "customers"; known here: classes, deployments`},
		{"unknown field", "    protocol: openai", "    protocl: openai", 4, `unknown field "protocl"`},
		{"unknown field deep inside", "limit_usd:", "limit_eur:", 19, `unknown field "limit_eur"`},
		{"field twice", "    protocol: openai", "    protocol: openai\n    protocol: openai", 5, "stands twice, first on line 4"},
		{"a list for a mapping", `prices: {input: "1.00", output: "2"}`, `prices: ["1.00"]`, 11, "must be a mapping, not a list"},
		{"a mapping for a list", "chain: [{deployment: d}]", "chain: {deployment: d}", 15, "must be a list, not a mapping"},
		{"text for a list", "chain: [{deployment: d}]", "chain: d", 15, "must be a list, not text"},
		{"text for a rung", "chain: [{deployment: d}]", "chain: [d]", 15, "must be a mapping, not text"},
		{"null in a list", "chain: [{deployment: d}]", "chain: [{deployment: d}, null]", 15, "models[0].chain[1]: is empty"},
		{"a list for a value", "upstream_model: m", "upstream_model: [m]", 10, "must be one value, not a list"},
		{"a number for text", "upstream_model: m", "upstream_model: 4", 10, "must be text, not a whole number: put it in quotes"},
		{"a boolean for text", "upstream_model: m", "upstream_model: true", 10, "must be text, not true or false"},
		{"empty text", "upstream_model: m", `upstream_model: ""`, 10, "is empty"},
		{"text for a boolean", "upstream_model: m", "upstream_model: m\n    masked: maybe", 11, "must be true or false, not text"},
		{"text for a number", "upstream_model: m", "upstream_model: m\n    context: {total: many}", 11, "must be a whole number, not text"},
		{"a fraction for a number", "upstream_model: m", "upstream_model: m\n    context: {total: 1.5}", 11, "must be a whole number, not a number"},
		{"a number out of range", "upstream_model: m", "upstream_model: m\n    context: {total: 99999999999999999999}", 11, "is too large a number"},
		{"a number a little out of range", "upstream_model: m", "upstream_model: m\n    context: {total: 9223372036854775808}", 11, "is too large a number"},
		{"a hexadecimal number", "upstream_model: m", "upstream_model: m\n    context: {total: 0x10}", 11, "must be a whole number in decimal digits"},
		{"digits in groups", "upstream_model: m", "upstream_model: m\n    context: {total: 100_000}", 11, "must be a whole number in decimal digits"},
		{"text for a fraction", "exact_model: m", "exact_model: m\n    policy: {throttle_cache_threshold: half}", 15, "must be a number, not text"},
		{"not a number", "exact_model: m", "exact_model: m\n    policy: {throttle_cache_threshold: .nan}", 15, "must be a finite number"},
		{"a deployment without a provider", "    provider: p\n", "", 8, "provider: is missing"},
		{"zero attempts", "exact_model: m", "exact_model: m\n    policy: {max_attempts: 0}", 15, "must be more than 0"},
		{"a price in words", `input: "1.00"`, `input: cheap`, 11, "must be a decimal number"},
		{"a price with an exponent", `input: "1.00"`, `input: "1e3"`, 11, "must be a decimal number"},
		{"a list of prices", `input: "1.00"`, `input: [1]`, 11, "must be one value, not a list"},
		{"a negative price", `input: "1.00"`, `input: "-1.00"`, 11, "a price cannot be negative"},
		{"a duration without a unit", "upstream_model: m", "upstream_model: m\n    timeouts: {connect: 5}", 11, "a duration with its unit"},
		{"no duration", "upstream_model: m", "upstream_model: m\n    timeouts: {connect: soon}", 11, "a duration with its unit"},
		{"a duration of nothing", "upstream_model: m", "upstream_model: m\n    timeouts: {connect: 0s}", 11, "must be longer than 0"},
		{"an alias of YAML", "chain: [{deployment: d}]", "chain: &c [{deployment: d}]\n    policy: *c", 16, "YAML anchors are not read"},
		{"a tag of YAML", "upstream_model: m", "upstream_model: !!binary bQ==", 10, "YAML tags are not read"},
		{"a missing base URL", "    base_url: http://127.0.0.1:9000/v1\n", "", 3, "providers[0].base_url: is missing"},
		{"a base URL of another scheme", "http://127.0.0.1:9000/v1", "file:///etc/passwd", 5, "not an absolute URL"},
		{"a base URL of no port", "http://127.0.0.1:9000/v1", "http://127.0.0.1:99999/v1", 5, "has a port that is not between"},
		{"a deployment of no provider", "provider: p", "provider: q", 9, `provider "q" does not exist`},
		{"a rung of no deployment", "{deployment: d}", "{deployment: e}", 15, `deployment "e" does not exist`},
		{"a rung of two targets", "{deployment: d}", "{deployment: d, model: m}", 15, "names 2 targets"},
		{"a rung of no target", "{deployment: d}", "{}", 15, "names no target"},
		{"a reference first", "[{deployment: d}]", "[{model: m}]", 15, "only after a deployment"},
		{"a provider twice", "deployments:", "  - {id: p, protocol: openai, base_url: \"http://x.test/v1\"}\ndeployments:", 7, "defined twice"},
		{"a budget of two limits", `limit_usd: "5.00"`, `limit_usd: "5.00", tokens: 5`, 19, "has 2 limits"},
		{"a budget of no limit", `limit_usd: "5.00", `, "", 19, "has 0 limits"},
		{"a budget of zero", `limit_usd: "5.00"`, `limit_usd: "0"`, 19, "must be more than 0"},
		{"a budget of zero requests", `limit_usd: "5.00"`, `requests: 0`, 19, "must be more than 0"},
		{"a budget in words", `limit_usd: "5.00"`, `limit_usd: plenty`, 19, "must be an amount"},
		{"a promotion of nothing", "budgets:", "promotions: [{id: x, models: [m], free_input_tokens: {overall: {per_day: 0}}}]\n    budgets:", 18, "must be more than 0"},
		{"a promotion of a total of nothing", "budgets:", "promotions: [{id: x, models: [m], free_input_tokens: {per_model: {total: 0}}}]\n    budgets:", 18, "must be more than 0"},
		{"a promotion of money in words", "budgets:", "promotions: [{id: x, models: [m], free_input_tokens: {overall: {total_usd: much}}}]\n    budgets:", 18, "must be an amount"},
		{"a promotion of no model", "budgets:", "promotions: [{id: x, models: [n], free_input_tokens: {overall: {total: 5}}}]\n    budgets:", 18, `model "n" does not exist`},
		{"a budget of an unknown scope", "scope: organization", "scope: planet", 19, "is none of organization"},
		{"a budget of a model that is not there", "scope: organization", "scope: model, of: gone", 19, "does not exist"},
		{"a budget of no period", ", per: month", "", 19, "per: is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			if text == good {
				t.Fatal("the edit does not change the file")
			}
			_, err := load(text)
			expectProblem(t, err, c.line, c.reason)
		})
	}
}

// The line of a text that is no YAML is the one to look at.
//
// Rules: C13.
func TestSyntaxErrorsNameTheLine_C13(t *testing.T) {
	for text, line := range map[string]int{
		"version: 1\nproviders:\n  - id: p\n   protocol: x\n":                              4,
		"version: 1\nproviders:\n  - id: p\n    protocol: x: y\n":                          4,
		"version: 1\nproviders:\n  - id: p\n    keys: [a, b\n    base_url: x\n":            4,
		"version: 1\nproviders:\n  - id: p\n    keys: {a, b\nmodels: []\n":                 4,
		"version: 1\nproviders:\n  - id: \"p\n    keys: [a, b]\n":                          3,
		"version: 1\nproviders:\n  - id: p\n  foo\n  - id: z\n":                            4,
		"version: 1\nproviders:\n  - id: p\n    keys:\n      - [a,\n        b]\n   x: 1\n": 7,
		"version: 1\nfoo bar\nmodels: []\n":                                                2,
		"version: 1\nmodels: []]\nfoo: x\n":                                                2,
		"version: 1\nmodels: {}\n  foo: 1\n":                                               3,
		"version: 1\n\n\nmodels: *x\nfoo: x\n":                                             4,
		"version: 1\n\n\nmodels:\n\t- x\nfoo: x\n":                                         5,
		"version: [1\n": 1,
		": : :\n":       1,
	} {
		_, err := load(text)
		var refused *config.FileError
		if !errors.As(err, &refused) || len(refused.Problems) != 1 || refused.Problems[0].Line != line {
			t.Errorf("%q: want line %d, got %v", text, line, err)
		}
	}
}

func expectProblem(t *testing.T, err error, line int, reason string) {
	t.Helper()
	var refused *config.FileError
	if !errors.As(err, &refused) {
		t.Fatalf("error %v, want a *FileError", err)
	}
	for _, p := range refused.Problems {
		if p.Line == line && strings.Contains(p.Path+": "+p.Reason, reason) {
			return
		}
	}
	t.Errorf("no problem on line %d with %q in\n%v", line, reason, err)
}

func TestEmptyAndOddFilesAreRefused(t *testing.T) {
	for text, reason := range map[string]string{
		"":                         "the file is empty",
		"# only a comment\n":       "the file is empty",
		"[]":                       "must be a mapping",
		"just text":                "must be a mapping",
		"version: 1\n? [a]\n: b\n": "unknown field this",
		"\x00":                     "not YAML",
		"\xff\xfe\xff":             "",
	} {
		_, err := load(text)
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: %v, want %q", text, err, reason)
		}
	}
	_, err := config.Load(bytes.NewReader(bytes.Repeat([]byte("#"), 33<<20)), "sluice.yaml")
	if err == nil || !strings.Contains(err.Error(), "larger than 32 MiB") {
		t.Errorf("33 MiB: %v", err)
	}
}

// A secret in the file is refused wherever one is likely to be put, and no
// message repeats it (C14).
func TestSecretsAreRefusedAndNotRepeated_C14(t *testing.T) {
	const secret = "sk-live-0123456789"
	const entry = "keys: [{id: k, env: P_KEY}]"
	for _, text := range []string{
		strings.Replace(good, entry, "keys: [{id: k, key: "+secret+"}]", 1),
		strings.Replace(good, entry, "keys: [{id: k, value: "+secret+", env: P_KEY}]", 1),
		strings.Replace(good, entry, "keys: [{id: k, api_key: {"+secret+": 1}}]", 1),
		strings.Replace(good, entry, "keys: [{id: k, env: "+secret+"}]", 1),
		strings.Replace(good, entry, "keys: [{id: k, env: ["+secret+"]}]", 1),
		strings.Replace(good, entry, "keys: ["+secret+"]", 1),
		strings.Replace(good, entry, "keys: "+secret, 1),
		strings.Replace(good, entry, "api_key: "+secret, 1),
		strings.Replace(good, entry, "keys: [{id: k, env: !"+secret+" x}]", 1),
		strings.Replace(good, "http://127.0.0.1", "http://me:"+secret+"@127.0.0.1", 1),
		strings.Replace(good, "9000/v1", "9000/v1?key="+secret, 1),
	} {
		_, err := load(text)
		if err == nil {
			t.Errorf("accepted:\n%s", text)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("repeats the secret: %v", err)
		}
	}
	_, err := load(strings.Replace(good, entry, "keys: [{id: k, key: "+secret+"}]", 1))
	expectProblem(t, err, 6, "a secret never stands in this file")
}

// All problems are told at once, in the order of the file, and not without end.
func TestAllProblemsAreTold(t *testing.T) {
	_, err := load(strings.NewReplacer("protocol: openai", "protocol: soap", "exact_model: m", "exact_model: m n", "per: month", "per: year").Replace(good))
	var refused *config.FileError
	if !errors.As(err, &refused) || len(refused.Problems) != 3 {
		t.Fatalf("%v", err)
	}
	for i, line := range []int{4, 14, 19} {
		if refused.Problems[i].Line != line {
			t.Errorf("problem %d is on line %d, want %d", i, refused.Problems[i].Line, line)
		}
	}

	_, err = load(good + strings.Repeat("      - {scope: moon, requests: 1, per: day}\n", 200))
	if !errors.As(err, &refused) || len(refused.Problems) != 50 || refused.More < 100 {
		t.Errorf("%d problems, %d more", len(refused.Problems), refused.More)
	}
}

// Deployments that no request will reach are named when the file is read (M3, M6).
func TestMissingPricesAreNamed_M3_M6(t *testing.T) {
	text := strings.Replace(good, `    prices: {input: "1.00", output: "2"}`, "    prices: {input: \"1.00\"}\n    capabilities: [prompt_caching]", 1)
	file, err := load(text)
	if err != nil || len(file.Warnings) != 1 || !strings.Contains(file.Warnings[0].Text, "price_unknown") || file.Warnings[0].Line != 8 {
		t.Errorf("%v, %v", file, err)
	}
	file, err = load(strings.Replace(text, `{input: "1.00"}`, `{input: "1.00", output: "2"}`, 1))
	if err != nil || len(file.Warnings) != 1 || !strings.Contains(file.Warnings[0].Text, "cache_price_missing") {
		t.Errorf("%v, %v", file, err)
	}
}

func FuzzLoad(f *testing.F) {
	whole, err := os.ReadFile("testdata/whole.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(good))
	f.Add([]byte("version: 1\nproviders: [{id: !!str x, keys: [*a]}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := config.Load(bytes.NewReader(text), "sluice.yaml")
		if err != nil {
			var refused *config.FileError
			if !errors.As(err, &refused) || len(refused.Problems) == 0 {
				t.Fatalf("refused without a reason: %v", err)
			}
			return
		}
		if problems := catalog.Validate(file.Objects); len(problems) > 0 {
			t.Fatalf("accepted with problems: %+v", problems)
		}
	})
}

package harness

import (
	"fmt"
	"strings"
	"text/template"
)

// Config is the part of a sluice.yaml that tests vary.
type Config struct {
	Providers []Provider
	Models    []Model
	// Tenants are acme, without a limit, when there are none.
	Tenants []Tenant
}

// Provider is an upstream.
type Provider struct {
	ID string
	// URL is the server's address, without a path.
	URL string
	// Protocol is what it speaks; empty: openai.
	Protocol string
	// Secret is its key; empty: one made from the ID.
	Secret string
	// Stored keeps the key sealed in the database and not in the environment.
	Stored bool
	// OnClientCancel is what becomes of a call whose caller leaves; empty: cancel.
	OnClientCancel string
}

// Model is a name that callers use.
type Model struct {
	Slug string
	// Routes are "provider/upstream model", tried in this order, or "model:SLUG" to go
	// on with another model.
	Routes []string
	// Input and Output are USD per million tokens; empty: 3.00 and 15.00.
	Input, Output string
	// Prices are further rates, YAML in flow style without its braces.
	Prices string
	// Timeouts are those of all routes, YAML in flow style; empty: the defaults.
	Timeouts string
	// Policy is YAML in flow style, "{max_attempts: 2}".
	Policy string
	// Capabilities are YAML too; empty: all that chat models have.
	Capabilities string
}

// Tenant is an organization.
type Tenant struct {
	ID string
	// MonthlyUSD is its organization budget; empty: none.
	MonthlyUSD string
	// Budgets are its limits, each YAML in flow style, in place of MonthlyUSD.
	Budgets []string
	// Connections are its own credentials.
	Connections []Connection
	// Chains are its own chains, each YAML in flow style.
	Chains []string
	// Promotions are YAML in flow style, a list.
	Promotions string
	// KeepsResponses lets its callers come back to answers by their ids.
	KeepsResponses bool
}

// Connection is an organization's own key at a provider.
type Connection struct {
	ID, Provider string
	// Secret is the key.
	Secret string
}

var yaml = template.Must(template.New("sluice.yaml").Funcs(template.FuncMap{
	"deployment": deployment, "provider": providerOf, "upstream": upstreamOf, "variable": variable, "or": or, "base": baseURL,
	"other": otherModel, "own": ownVariable,
}).Parse(`version: 1
providers:
{{- range .Providers}}
  - {id: {{.ID}}, protocol: {{or .Protocol "openai"}}, base_url: {{base . | printf "%q"}}, keys: [{id: k1, {{if .Stored}}stored: true{{else}}env: {{variable .ID}}{{end}}}]
    {{- with .OnClientCancel}}, on_client_cancel: {{.}}{{end}}}
{{- end}}
deployments:
{{- range $m := .Models}}{{range $i, $route := $m.Routes}}{{if not (other $route)}}
  - id: {{deployment $m.Slug $i $route}}
    provider: {{provider $route}}
    upstream_model: {{upstream $route | printf "%q"}}
    context: {total: 1050000, max_input: 922000, max_output: 128000}
    capabilities: {{or $m.Capabilities "[chat, tools, images, structured_output, reasoning]"}}
    prices: {input: "{{or $m.Input "3.00"}}", output: "{{or $m.Output "15.00"}}", {{with $m.Prices}}{{.}}, {{end}}source: "made up for tests"}
{{- with $m.Timeouts}}
    timeouts: {{.}}
{{- end}}{{end}}{{end}}{{end}}
models:
{{- range $m := .Models}}
  - slug: {{$m.Slug}}
    exact_model: {{$m.Slug}}
    equivalence: {certified_by: tests, on: "2026-11-01", evidence: "made up for tests"}
    policy: {{or $m.Policy "{failover_mode: maximize_availability}"}}
    chain: [{{range $i, $route := $m.Routes}}{{if $i}}, {{end}}{{with other $route}}{model: {{.}}}{{else}}{deployment: {{deployment $m.Slug $i $route}}}{{end}}{{end}}]
{{- end}}
tenants:
{{- range .Tenants}}
  - id: {{.ID}}
{{- with .MonthlyUSD}}
    budgets: [{scope: organization, limit_usd: "{{.}}", per: month}]
{{- end}}{{with .Budgets}}
    budgets: [{{range $i, $b := .}}{{if $i}}, {{end}}{{$b}}{{end}}]
{{- end}}{{with .Chains}}
    chains: [{{range $i, $c := .}}{{if $i}}, {{end}}{{$c}}{{end}}]
{{- end}}{{with .Connections}}
    connections:
{{- range .}}
      - {id: {{.ID}}, provider: {{.Provider}}, env: {{own .}}}
{{- end}}{{end}}{{with .Promotions}}
    promotions: {{.}}
{{- end}}{{if .KeepsResponses}}
    retention: {responses: true}
{{- end}}{{end}}
`))

// YAML is the configuration as a file for sluice apply.
func (c Config) YAML() string {
	if len(c.Tenants) == 0 {
		c.Tenants = []Tenant{{ID: "acme"}}
	}
	var text strings.Builder
	if err := yaml.Execute(&text, c); err != nil {
		panic(err) // the template and the types above do not match
	}
	return text.String()
}

// secrets are the variables that hold the providers' keys and the organizations' own.
func (c Config) secrets() []string {
	var env []string
	for _, p := range c.Providers {
		if !p.Stored {
			env = append(env, variable(p.ID)+"="+p.secret())
		}
	}
	for _, tenant := range c.Tenants {
		for _, own := range tenant.Connections {
			env = append(env, ownVariable(own)+"="+own.Secret)
		}
	}
	return env
}

func (p Provider) secret() string { return or(p.Secret, "upstream-key-of-"+p.ID) }

// baseURL is what the vendor's own SDK takes. A Bedrock without a region is in
// us-east-1, and its key is an API key.
func baseURL(p Provider) string {
	switch p.Protocol {
	case "anthropic", "bedrock":
		return p.URL
	case "gemini":
		return p.URL + "/v1beta"
	default:
		return p.URL + "/v1"
	}
}

func deployment(slug string, rung int, route string) string {
	return fmt.Sprintf("%s-%d@%s", slug, rung, providerOf(route))
}

func providerOf(route string) string {
	id, _, _ := strings.Cut(route, "/")
	return id
}

func upstreamOf(route string) string {
	_, model, _ := strings.Cut(route, "/")
	return model
}

// otherModel is the model that a route goes on with, or nothing.
func otherModel(route string) string {
	slug, is := strings.CutPrefix(route, "model:")
	if !is {
		return ""
	}
	return slug
}

func ownVariable(c Connection) string { return "OWN_" + variable(c.ID+"_"+c.Provider) }

func variable(provider string) string {
	return "UPSTREAM_KEY_" + strings.ToUpper(strings.ReplaceAll(provider, "-", "_"))
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

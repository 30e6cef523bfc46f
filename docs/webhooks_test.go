package docs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/billing"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/webhook"
)

// told says what each kind of news is about, in the order of the documentation.
var told = map[catalog.WebhookEvent]string{
	catalog.HookCircuitOpened:       "a worker stopped calling a route, an endpoint or with a credential",
	catalog.HookCircuitClosed:       "it calls there again",
	catalog.HookBudgetThreshold:     "a budget passed one of its thresholds",
	catalog.HookBudgetExhausted:     "a budget refused a request, for the first time in its window",
	catalog.HookAliasDegraded:       "nothing fits an alias any more",
	catalog.HookBillClosed:          "a bill was closed",
	catalog.HookReconciliationDrift: "a reconciliation found a difference",
	catalog.HookProjectionStalled:   "a read model does not follow the log",
	catalog.HookProjectionRecovered: "it follows again",
	webhook.TypePing:                "somebody asked for a ping",
}

// examples is news of each kind that there is so far, from the events that make it.
func examples(t *testing.T) []webhook.News {
	t.Helper()
	at := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	route := circuit.Name{
		Kind: circuit.Route, Key: "9f86d081884c7d659a2feaa0", Provider: "bedrock-east", Model: "fable-5",
		Deployment: "fable-5@bedrock", Credential: "k1",
	}
	var list []webhook.News
	for _, e := range []any{
		circuit.CircuitOpened{Name: route, Cause: circuit.Cause{Class: failure.ServerError, Status: 503}, Until: at.Add(30 * time.Second), Trips: 1},
		circuit.CircuitClosed{Name: route},
		request.BudgetThresholdReached{
			Tenant: "acme", Budget: "organization/usd/month", Scope: "organization", Unit: "nanousd", Window: "2026-11",
			Threshold: 400e9, Limit: 500e9, Used: 400_017_952_000, Resets: "2026-12-01T00:00:00Z",
		},
		request.RequestRefused{Tenant: "acme", Refusal: request.Refusal{
			Code: "insufficient_quota", Scope: "organization", Limit: 500e9, Used: 499_350e6, Unit: "nanousd", Resets: "2026-12-01T00:00:00Z",
		}},
		catalog.AliasDegraded{Tenant: "acme", Name: "summarise"},
		reconciliation.CheckCompleted{
			Check: "counters", Result: reconciliation.Differs, Finding: reconciliation.Finding{Compared: 12, Drifted: 1},
		},
		billing.BillClosed{Tenant: "acme", Period: "2026-10", Amounts: request.Amounts{List: 304850, Charge: 304850, ProviderCost: 304850}, Lines: 3},
	} {
		n, ok := webhook.Of(e, streamOf(e), "0193e8f0-0000-7000-8000-000000000009")
		if !ok {
			t.Fatalf("%T is no news", e)
		}
		list = append(list, n)
	}
	shard, position := int16(0), int64(48151)
	return append(list,
		webhook.News{Type: catalog.HookProjectionStalled, Data: webhook.ProjectionStalled{Projection: "bills", Since: at, Shard: &shard, Position: &position}},
		webhook.News{Type: catalog.HookProjectionRecovered, Data: webhook.ProjectionRecovered{Projection: "bills", Since: at}},
		webhook.News{Type: webhook.TypePing, Tenant: "acme", Data: webhook.Ping{Webhook: "bills"}},
	)
}

func streamOf(e any) string {
	if _, ok := e.(reconciliation.CheckCompleted); ok {
		return reconciliation.Stream("0193e8f0-0000-7000-8000-00000000000a")
	}
	return "threshold/org/acme/usd/month/2026-11"
}

func webhookMessages(t *testing.T) string {
	var rows [][]string
	for _, e := range append(catalog.WebhookEvents(), webhook.TypePing) {
		whom := "operator"
		if e.ForTenants() || e == webhook.TypePing {
			whom = "operator, organization"
		}
		if told[e] == "" {
			t.Errorf("%s is not described", e)
		}
		rows = append(rows, []string{code(string(e)), told[e], whom})
	}
	if len(told) != len(rows) {
		t.Errorf("described are %v", slices.Sorted(maps.Keys(told)))
	}
	var b strings.Builder
	b.WriteString(table([]string{"type", "when", "for webhooks of the"}, rows))
	b.WriteString("\n```json\n")
	for i, n := range examples(t) {
		id := webhook.ID(webhook.FromLog(0, 48151+int64(i)), n.Tenant, "ops")
		var body bytes.Buffer
		if err := json.Indent(&body, webhook.Body(id, time.Date(2026, 11, 29, 10, 0, 0, 123_000, time.UTC), n), "", "  "); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", body.Bytes())
	}
	b.WriteString("```\n")
	return b.String()
}

// The lines of Python in the document take what is signed, with a secret of either form,
// and nothing that was changed.
//
// Rules: U4.
func TestTheVerificationThatIsShownWorks_U4(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here: " + err.Error())
	}
	_, rest, _ := strings.Cut(read(t, "webhooks.md"), "```python\n")
	snippet, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the document shows no Python")
	}
	body := []byte(`{"id":"1","data":"ü"}`)
	var script strings.Builder
	script.WriteString(snippet)
	for _, secret := range []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "a plain secret"} {
		key, err := webhook.Key(secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			at   time.Time
			body []byte
		}{{time.Now(), body}, {time.Now(), append(body, ' ')}, {time.Now().Add(-time.Hour), body}} {
			headers := map[string]string{}
			for name, value := range webhook.Sign(key, uuid.MustParse("46c28805-fce1-5f20-a005-48f0ea710771"), c.at, body) {
				headers[strings.ToLower(name)] = value
			}
			text, _ := json.Marshal(headers)
			fmt.Fprintf(&script, "print(verified(%q, %s, bytes(%s)))\n", secret, text, strings.ReplaceAll(fmt.Sprint(c.body), " ", ","))
		}
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", script.String())
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "True\nFalse\nFalse\nTrue\nFalse\nFalse\n" {
		t.Errorf("%v:\n%s", err, out)
	}
}

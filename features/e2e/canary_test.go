package e2e_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// TestNoContentIsWrittenAnywhere_E10 plants a word in everything that passes
// through and looks for it in everything that is kept: every table, what the
// worker says, and its metrics. One provider's key is stored: sealed, and so without
// the word.
//
// Rules: E10, C14, Z2.
func TestNoContentIsWrittenAnywhere_E10(t *testing.T) {
	echo := startEchoProvider(t)
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	in := harness.Install(t, harness.Config{
		Providers: []harness.Provider{
			{ID: "echo", URL: echo, Secret: canary("upstream-key")},
			{ID: "fake", URL: fake.URL(), Secret: canary("other-upstream-key"), Stored: true},
		},
		Models: []harness.Model{
			{Slug: "answers", Routes: []string{"echo/answer"}},
			{Slug: "refuses", Routes: []string{"echo/refuse"}},
			{Slug: "breaks", Routes: []string{"echo/break", "echo/answer"}},
			{Slug: "garbles", Routes: []string{"echo/garble"}},
			{Slug: "tools", Routes: []string{"fake/fake-tools:2"}},
			{Slug: "cuts", Routes: []string{"fake/fake-cut:2:rst"}},
		},
	})
	key := in.Key(t, "acme")
	worker := in.Serve(t)
	client := worker.Client(key)
	for _, model := range []string{"answers", "refuses", "breaks", "garbles", "tools", "cuts"} {
		for _, stream := range []bool{false, true} {
			_, _ = client.Try("POST", harness.ChatPath, canaryBody(model, stream),
				"Idempotency-Key", canary(fmt.Sprint("idempotency-", model, stream)),
				"X-Custom", canary("header"), "OpenAI-Organization", canary("organization"), "User-Agent", canary("agent"))
		}
	}
	_, _ = client.Try("POST", harness.ChatPath, `{"model":"answers","messages":[{"role":"`+canary("role")+`"}]}`)
	_, _ = client.Try("POST", harness.ChatPath, canary("not-json"))
	_, _ = worker.Client(canary("unknown-key")).Try("GET", "/v1/requests?model="+canary("query"), "")
	_, _ = client.Try("GET", "/v1/"+canary("path"), "")

	if calls := fake.Ledger().Calls; len(calls) == 0 || calls[0].KeyLast4 != "-key" {
		t.Fatalf("the stored key was not used: %+v", calls)
	}
	kept := map[string]string{
		"database": in.Dump(t), "worker": worker.Stderr(),
		"metrics": string(harness.Client{Base: worker.Admin}.Get(t, "/metrics").Body),
	}
	if !strings.Contains(kept["database"], "attempt_settled") && !strings.Contains(kept["database"], "AttemptSettled") {
		t.Fatal("the dump holds no settled attempt: nothing was looked at")
	}
	for place, text := range kept {
		for _, secret := range []string{canaryMark, hex.EncodeToString([]byte(canaryMark)), key, strings.TrimPrefix(key, "sk-sluice-")} {
			for line := range strings.Lines(text) {
				if strings.Contains(line, secret) {
					t.Errorf("%s holds %q:\n%.600s", place, secret, line)
				}
			}
		}
	}
}

// canaryMark is in every planted word.
const canaryMark = "CANARY9f3e"

func canary(where string) string { return canaryMark + "-" + where }

// canaryBody has a planted word wherever a caller's text may stand.
func canaryBody(model string, stream bool) string {
	return harness.ChatBody(model, canary("prompt"), map[string]any{
		"stream": stream,
		"user":   canary("user"),
		"messages": []any{
			map[string]any{"role": "system", "content": canary("system")},
			map[string]any{"role": "user", "content": canary("prompt")},
			map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
				"id": canary("call"), "type": "function",
				"function": map[string]any{"name": canary("function"), "arguments": `{"a":"` + canary("argument") + `"}`},
			}}},
			map[string]any{"role": "tool", "tool_call_id": canary("call"), "content": canary("tool-result")},
		},
		"tools": []any{
			map[string]any{"type": "function", "function": map[string]any{
				"name": canary("function"), "description": canary("description"),
				"parameters": map[string]any{"type": "object", "properties": map[string]any{canary("property"): map[string]any{"type": "string"}}},
			}},
			map[string]any{"type": "function", "function": map[string]any{"name": "second", "parameters": map[string]any{"type": "object"}}},
		},
		"metadata": map[string]any{"note": canary("metadata")},
	})
}

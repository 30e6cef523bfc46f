package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/adapters/http/api"
	"github.com/sluice-gateway/sluice/domain/budget"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// counted are counters that stand still.
type counted map[budget.Key]budget.Counter

func (c counted) Counters(_ context.Context, _ int16, keys []budget.Key) (map[budget.Key]budget.Counter, error) {
	found := map[budget.Key]budget.Counter{}
	for _, k := range keys {
		found[k] = c[k]
	}
	return found, nil
}

// An organization sees its promotions in tokens. What was written in money is about so
// many tokens, and says so.
//
// Rules: M10.
func TestPromotionsAreShownInTokens_M10(t *testing.T) {
	b := gatewaytest.New(t, "fake-ok") // input costs 3 USD a million, output 15
	now := time.Date(2026, 11, 30, 10, 30, 0, 0, time.UTC)
	b.Objects.Tenants[0].Promotions = []catalog.Promotion{
		{ID: "before", Models: []string{"m"}, Ends: "2026-11-01", FreeInputTokens: &catalog.Allowances{Overall: &catalog.AllowanceLimits{Total: 1}}},
		{ID: "later", Models: []string{"m"}, Starts: "2026-12-01", FreeInputTokens: &catalog.Allowances{Overall: &catalog.AllowanceLimits{Total: 1}}},
		{
			ID: "now", Models: []string{"m"}, Starts: "2026-11-01", Ends: "2026-12-01", CachedInputFree: true,
			FreeInputTokens: &catalog.Allowances{
				PerModel: &catalog.AllowanceLimits{PerHour: 1000},
				Overall:  &catalog.AllowanceLimits{TotalUSD: "3"},
			},
		},
	}
	counters := counted{
		"promo/acme/now/input/model/m/tokens/hour/2026-11-30T10": {Held: 100, Settled: 950},
		"promo/acme/now/input/overall/usd/total/total":           {Settled: 1_500_000_000},
	}
	address, key := serve(t, b, func(c *api.Config) {
		c.Counters, c.ShardOf, c.Now = counters, func(string) int16 { return 0 }, func() time.Time { return now }
	})
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	reply, text := caller{t, address, key}.do("GET", "/v1/promotions", "")
	if reply.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", reply.StatusCode, text)
	}
	body := gjson.Parse(text)
	for path, want := range map[string]string{
		"data.#.id":                            `["before","later","now"]`,
		"data.#.state":                         `["ended","upcoming","running"]`,
		"data.0.allowances":                    `[]`,
		"data.0.starts":                        `null`,
		"data.2.ends":                          `"2026-12-01T00:00:00Z"`,
		"data.2.free_input":                    `true`,
		"data.2.free_output":                   `false`,
		"data.2.cached_input_free":             `true`,
		"data.2.allowances.#":                  `2`,
		"data.2.allowances.0.model":            `"m"`,
		"data.2.allowances.0.per":              `"hour"`,
		"data.2.allowances.0.limit_tokens":     `1000`,
		"data.2.allowances.0.held_tokens":      `100`,
		"data.2.allowances.0.given_tokens":     `950`,
		"data.2.allowances.0.remaining_tokens": `0`,
		"data.2.allowances.0.approximate":      `false`,
		"data.2.allowances.0.resets_at":        `"2026-11-30T11:00:00Z"`,
		"data.2.allowances.1.side":             `"input"`,
		"data.2.allowances.1.model":            `null`,
		"data.2.allowances.1.per":              `"total"`,
		"data.2.allowances.1.limit_tokens":     `1000000`,
		"data.2.allowances.1.given_tokens":     `500000`,
		"data.2.allowances.1.remaining_tokens": `500000`,
		"data.2.allowances.1.approximate":      `true`,
		"data.2.allowances.1.resets_at":        `null`,
	} {
		if got := body.Get(path).Raw; got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if t.Failed() {
		t.Log(body.Raw)
	}
}

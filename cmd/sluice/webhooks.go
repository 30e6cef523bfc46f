package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/adapters/webhooks"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/projections"
	queue "github.com/sluice-gateway/sluice/projections/webhooks"
)

// followers are what follows the log on this worker: the views, and the queue of what
// webhooks are told.
func (w *worker) followers(views []projections.Projection) []projections.Projection {
	return append(views, queue.Projection{Log: w.store, Now: time.Now})
}

func (w *worker) wireWebhooks() {
	w.hooks = webhooks.New(webhooks.Config{
		DB: w.pool,
		Webhook: func(tenant, id string) (catalog.Webhook, bool) {
			snapshot := w.catalog.Current()
			if snapshot == nil {
				return catalog.Webhook{}, false
			}
			return snapshot.Webhook(tenant, id)
		},
		Secret: w.credentials.Webhook, Opened: w.opened,
		Now: time.Now, Random: rand.Float64, Logger: w.logger,
	})
}

// hookTotals tell what webhooks are still to be told.
type hookTotals struct{ w *worker }

var (
	hooksPending = prometheus.NewDesc("sluice_webhooks_pending", "Messages that wait to be taken by a webhook.", nil, nil)
	hooksDead    = prometheus.NewDesc("sluice_webhooks_dead", "Messages that were given up and are still kept.", nil, nil)
	hooksFailing = prometheus.NewDesc("sluice_webhooks_failing", "Webhooks that failed when they were called last.", nil, nil)
	hooksOldest  = prometheus.NewDesc("sluice_webhooks_oldest_seconds", "Age of the oldest message that waits; 0 for none.", nil, nil)
	hookAttempts = prometheus.NewDesc("sluice_webhook_attempts_total", "Attempts of this worker, by how they ended.", []string{"outcome"}, nil)
)

// Describe is prometheus.Collector's.
func (hookTotals) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{hooksPending, hooksDead, hooksFailing, hooksOldest, hookAttempts} {
		ch <- d
	}
}

// Collect says nothing of the queue while the database is away.
func (h hookTotals) Collect(ch chan<- prometheus.Metric) {
	stats := h.w.hooks.Stats()
	for outcome, n := range map[string]int64{"delivered": stats.Delivered, "failed": stats.Failed} {
		ch <- prometheus.MustNewConstMetric(hookAttempts, prometheus.CounterValue, float64(n), outcome)
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	totals, err := queue.Count(ctx, h.w.pool)
	if err != nil {
		return
	}
	var oldest float64
	if totals.Oldest != nil {
		oldest = max(0, time.Since(*totals.Oldest).Seconds())
	}
	for desc, value := range map[*prometheus.Desc]float64{
		hooksPending: float64(totals.Pending), hooksDead: float64(totals.Dead), hooksFailing: float64(totals.Failing), hooksOldest: oldest,
	} {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
}

// examineWebhooks finds the webhooks that a worker with this environment would tell
// nothing: it cannot sign, or must not post there.
func examineWebhooks(db database, state *catalog.State) []finding {
	guard, err := guardHere(db)
	if err != nil {
		return nil // said of the base URLs
	}
	o, env := state.Objects(), secrets.NewEnv()
	var findings []finding
	count := 0
	examine := func(tenant string, list []catalog.Webhook) {
		for _, h := range list {
			count++
			_, held := state.Credential(catalog.WebhookSecret(tenant, h.ID))
			check := "webhook " + strings.TrimPrefix(tenant+"/"+h.ID, "/")
			switch {
			case h.Disabled:
			case h.Stored && !held:
				findings = append(findings, finding{check, warn, "its secret is not stored: nothing is sent"})
			case !h.Stored && !env.Has(h.Env):
				findings = append(findings, finding{check, warn, h.Env + " is not set here: nothing is sent"})
			case webhooks.Refuses(h.URL, guard.Opened):
				findings = append(findings, finding{check, warn, config.RefusedWebhook(h)})
			}
		}
	}
	examine("", o.Webhooks)
	for _, t := range o.Tenants {
		examine(t.ID, t.Webhooks)
	}
	if count > 0 && len(findings) == 0 {
		return []finding{{"webhooks", ok, plural(count, "webhook")}}
	}
	return findings
}

package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/sluice-gateway/sluice/domain/reconciliation"
)

// scrapeTimeout bounds what a scrape asks the database.
const scrapeTimeout = 2 * time.Second

// metrics are what the worker knows about itself, read when they are asked for.
func (w *worker) metrics() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	v := thisVersion()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_build_info", Help: "What runs; always 1.",
		ConstLabels: prometheus.Labels{"commit": v.Commit, "build": v.Build, "worker": w.id},
	})
	info.Set(1)
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), info,
		counter("sluice_log_batches_total", "Transactions of the append lane.", func() int64 { return w.store.Stats().Batches }),
		counter("sluice_log_appends_total", "Rows written to the log.", func() int64 { return w.store.Stats().Appends }),
		counter("sluice_log_events_total", "Events written to the log.", func() int64 { return w.store.Stats().Events }),
		gauge("sluice_log_queue_events", "Events waiting for the append lane.", func() float64 { return float64(w.store.Stats().QueuedEvents) }),
		gauge("sluice_log_queue_bytes", "Bytes waiting for the append lane.", func() float64 { return float64(w.store.Stats().QueuedBytes) }),
		gauge("sluice_catalog_age_seconds", "Time since the catalog was last read to its end.", func() float64 { return w.catalog.Status().Age.Seconds() }),
		gauge("sluice_catalog_refresh_failed", "1 while the last refresh of the catalog failed.", func() float64 { return truth(w.catalog.Status().Err != nil) }),
		gauge("sluice_ready", "1 while the worker asks for traffic.", func() float64 { return truth(len(w.problems(context.Background())) == 0) }),
		lag{w}, hookTotals{w}, reconciled{w},
	)
	return registry
}

func counter(name, help string, read func() int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(read()) })
}

func gauge(name, help string, read func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// lag tells how far the projections are behind the log (E5).
type lag struct{ w *worker }

var (
	lagDesc = prometheus.NewDesc("sluice_projection_lag_events",
		"Events between a projection and the end of the log.", []string{"projection"}, nil)
	stalledDesc = prometheus.NewDesc("sluice_projection_stalled",
		"1 while a projection cannot go on.", []string{"projection"}, nil)
)

// Describe is prometheus.Collector's.
func (lag) Describe(ch chan<- *prometheus.Desc) { ch <- lagDesc; ch <- stalledDesc }

// Collect says nothing while the database is away: an old number would look like a
// projection that keeps up.
func (l lag) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	all, err := l.w.runner.Status(ctx)
	if err != nil {
		return
	}
	behind, stalled := map[string]int64{}, map[string]bool{}
	for _, s := range all { // one a shard
		behind[s.Name] += s.Lag
		stalled[s.Name] = stalled[s.Name] || s.Stalled != nil
	}
	for name, events := range behind {
		ch <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, float64(events), name)
		ch <- prometheus.MustNewConstMetric(stalledDesc, prometheus.GaugeValue, truth(stalled[name]), name)
	}
}

// reconciled tells what the newest reconciliations found (R7). Drift does not make a worker
// unready: it serves as well as before, and another would serve no better.
type reconciled struct{ w *worker }

var (
	reconciledResultDesc = prometheus.NewDesc("sluice_reconciliation_result",
		"1 for the newest result of a check: passed, drift or timed_out.", []string{"check", "result"}, nil)
	reconciledAgeDesc = prometheus.NewDesc("sluice_reconciliation_age_seconds",
		"Time since the newest result of a check.", []string{"check"}, nil)
	reconciledDriftDesc = prometheus.NewDesc("sluice_reconciliation_drifted",
		"What differed from the log in the newest result of a check.", []string{"check"}, nil)
	reconciledStalledDesc = prometheus.NewDesc("sluice_reconciliation_stalled",
		"1 while the newest reconciliation has no end and makes no progress.", nil, nil)
)

// Describe is prometheus.Collector's.
func (reconciled) Describe(ch chan<- *prometheus.Desc) {
	ch <- reconciledResultDesc
	ch <- reconciledAgeDesc
	ch <- reconciledDriftDesc
	ch <- reconciledStalledDesc
}

// Collect reads the log: every worker tells the same. It says nothing while the database
// is away, and nothing about a check that has no result of late: neither is a pass.
func (r reconciled) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	health, err := r.w.reconciler.Health(ctx)
	if err != nil {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(reconciledStalledDesc, truth(health.Stalled))
	for check, done := range health.Checks {
		for _, result := range reconciliation.Results() {
			gauge(reconciledResultDesc, truth(done.Result == result), string(check), string(result))
		}
		gauge(reconciledAgeDesc, time.Since(done.At).Seconds(), string(check))
		gauge(reconciledDriftDesc, float64(done.Drifted), string(check))
	}
}

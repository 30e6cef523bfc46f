package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/reconciler"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
)

// The command says what it found: exit 0 when every check passed, 1 on drift and when
// the time was over; what it ran is in the log (R7).
func TestReconcile_R7(t *testing.T) {
	served(t)
	report := decode[reconciler.Report](t, must(t, "reconcile", "--output", "json"))
	if report.State != reconciliation.Done || *report.Result != reconciliation.Passed || len(report.Checks) != len(reconciliation.Checks()) ||
		!strings.HasPrefix(report.Actor, "cli:") {
		t.Errorf("%+v", report)
	}
	if out := must(t, "reconcile", "--checks", "money,counters"); strings.Count(out, "passed") != 2 {
		t.Errorf("two checks: %s", out)
	}

	address, _ := databaseFromEnv()
	onServer(t, address.url, "update bill_lines set charge_nanousd = charge_nanousd + 7")
	r := sluice(t, "reconcile")
	for _, says := range []string{"drift      money", "bill acme/", "drift      bills", "passed     counters", "sluice rebuild"} {
		if r.code != exitFailed || !strings.Contains(r.stdout, says) {
			t.Errorf("exit %d, does not say %q:\n%s", r.code, says, r.stdout)
		}
	}
	must(t, "rebuild", "bills")
	must(t, "reconcile")

	// A context that ends interrupts the run: nothing of it has passed.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := execute(ctx, []string{"reconcile"}, newWatched(), newWatched()); code == exitDone {
		t.Error("an interrupted run passed")
	}
	runs := 0
	for _, rec := range readLog(t) {
		if rec.Type == "reconciliation_started" {
			runs++
		}
	}
	if runs < 4 {
		t.Errorf("%d runs in the log", runs)
	}
}

// A worker does what its API is asked for, shows it in the metrics, and stays ready
// whatever was found (R7).
func TestAWorkerReconciles_R7(t *testing.T) {
	served(t)
	address, _ := databaseFromEnv()
	onServer(t, address.url, "update budget_counters set settled = settled + 1")
	const admin = "the-bootstrap-key-of-a-test"
	t.Setenv("SLUICE_ADMIN_KEY", admin)
	s := serve(t)
	status, text := do(t, http.MethodPost, s.admin+"/admin/v1/reconciliations", admin, `{"time_budget":"1m"}`)
	if status != http.StatusAccepted {
		t.Fatalf("%d %s", status, text)
	}
	asked := decode[reconciler.Report](t, text)
	eventually(t, "the run is over", func() bool {
		status, text = get(t, s.admin+"/admin/v1/reconciliations/"+asked.ID.String(), admin)
		return status == http.StatusOK && decode[reconciler.Report](t, text).Result != nil
	})
	if report := decode[reconciler.Report](t, text); *report.Result != reconciliation.Differs || report.Actor != "bootstrap" || report.Worker == "" {
		t.Errorf("%s", text)
	}
	_, metrics := get(t, s.admin+"/metrics", "")
	for _, line := range []string{
		`sluice_reconciliation_result{check="counters",result="drift"} 1`,
		`sluice_reconciliation_result{check="counters",result="passed"} 0`,
		`sluice_reconciliation_result{check="requests",result="passed"} 1`,
		`sluice_reconciliation_drifted{check="counters"} 1`,
		`sluice_reconciliation_age_seconds{check="bills"} `,
		`sluice_reconciliation_stalled 0`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %s", line)
		}
	}
	if status, text := get(t, s.admin+"/readyz", ""); status != http.StatusOK {
		t.Errorf("drift makes the worker unready: %d %s", status, text)
	}
	if code := s.end(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, s.stderr)
	}
}

// Rules: R7.
func TestReconcileSettings_R7(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 24 * time.Hour, "0": 0, "6h": 6 * time.Hour} {
		every, _, err := reconcileSettings(func(name string) string { return map[string]string{reconcileEveryEnv: text}[name] })
		if err != nil || every != want {
			t.Errorf("every %q: %s, %v", text, every, err)
		}
	}
	for name, text := range map[string]string{reconcileEveryEnv: "1s", reconcileBudgetEnv: "0"} {
		if _, _, err := reconcileSettings(func(n string) string { return map[string]string{name: text}[n] }); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, text, err)
		}
	}
	if _, budget, err := reconcileSettings(func(n string) string { return map[string]string{reconcileBudgetEnv: "2h"}[n] }); err != nil || budget != 2*time.Hour {
		t.Errorf("%s, %v", budget, err)
	}
}

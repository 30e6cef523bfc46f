package adminapi_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/reconciliation"
)

// A reconciliation runs behind the request that asked for it, one at a time, and can be
// watched: it has no result before its end, and its checks are named (R7).
func TestReconciliationRunsBehind_R7(t *testing.T) {
	s := start(t)
	proceed, began := make(chan struct{}), make(chan reconciliation.Check)
	s.Look = func(ctx context.Context, check reconciliation.Check, progress func(int64, int64)) (reconciliation.Finding, error) {
		began <- check
		select {
		case <-proceed:
		case <-ctx.Done():
		}
		var f reconciliation.Finding
		if check == reconciliation.Money {
			f.Add(reconciliation.Amounts("bill acme/2026-11", 10, 11))
		}
		return f, ctx.Err()
	}
	check(t, do(t, s, 200, "GET", "/reconciliations", "", ""), "data", "[]")
	asked := do(t, s, 202, "POST", "/reconciliations", "", `{"checks":["money","counters"],"time_budget":"90s"}`)
	id := strings.Trim(asked.Field("id"), `"`)
	check(t, asked, "state", `"running"`)
	check(t, asked, "result", "null")
	check(t, asked, "actor", `"bootstrap"`)
	check(t, asked, "time_budget_ms", "90000")
	if first := <-began; first != reconciliation.Counters {
		t.Errorf("begins with %s", first)
	}
	check(t, do(t, s, 409, "POST", "/reconciliations", "", ""), "error.code", `"reconciliation_running"`)
	proceed <- struct{}{}
	<-began
	halfway := do(t, s, 200, "GET", "/reconciliations/"+id, "", "")
	check(t, halfway, "result", "null")
	mentions(t, string(halfway.Body), `"check":"counters","result":"passed"`)
	mentions(t, string(halfway.Body), `"check":"money","result":null`)
	proceed <- struct{}{}
	ended := halfway
	for ended.Field("state") == `"running"` {
		ended = do(t, s, 200, "GET", "/reconciliations/"+id, "", "")
	}
	check(t, ended, "state", `"finished"`)
	check(t, ended, "result", `"drift"`)
	mentions(t, string(ended.Body), `{"key":"bill acme/2026-11","is":"amount","log":10,"live":11}`)
}

// A run whose worker is gone reads as stalled on every worker, and never as passed (R7).
func TestStalledReconciliationShows_R7(t *testing.T) {
	s := start(t)
	began, proceed := make(chan struct{}), make(chan struct{})
	s.Look = func(context.Context, reconciliation.Check, func(int64, int64)) (reconciliation.Finding, error) {
		began <- struct{}{}
		<-proceed
		return reconciliation.Finding{}, nil
	}
	id := strings.Trim(do(t, s, 202, "POST", "/reconciliations", "", "").Field("id"), `"`)
	<-began
	s.Leads.Kill()
	stalled := do(t, s, 200, "GET", "/reconciliations/"+id, "", "")
	check(t, stalled, "state", `"stalled"`)
	check(t, stalled, "result", "null")
	check(t, stalled, "ended_at", "null")
	check(t, stalled, "progress.check", `"counters"`)
	close(proceed)
}

// Runs are paged, newest first, and what is asked wrongly is refused with its field.
func TestReconciliationsArePaged_R7(t *testing.T) {
	s := start(t)
	var ids []string
	for range 3 {
		id := strings.Trim(do(t, s, 202, "POST", "/reconciliations", "", "{}").Field("id"), `"`)
		for do(t, s, 200, "GET", "/reconciliations/"+id, "", "").Field("state") == `"running"` {
		}
		ids = append(ids, id)
	}
	first := do(t, s, 200, "GET", "/reconciliations?limit=2", "", "")
	mentions(t, string(first.Body), ids[2])
	check(t, first, "next_cursor", `"`+ids[1]+`"`)
	last := do(t, s, 200, "GET", "/reconciliations?limit=2&cursor="+ids[1], "", "")
	mentions(t, string(last.Body), ids[0])
	check(t, last, "next_cursor", "null")

	events := len(s.Log.Events)
	for _, c := range [][2]string{
		{`{"checks":["horoscopes"]}`, `"checks"`},
		{`{"time_budget":"soon"}`, `"time_budget"`},
		{`{"time_budget":"0s"}`, `"time_budget"`},
		{`{"time_budget":"10ms"}`, `"time_budget"`},
		{`{"time_budget":"48h"}`, `"time_budget"`},
		{`{"check":["money"]}`, ``}, // the message names it
		{`{"checks":"money"}`, `"checks"`},
	} {
		check(t, do(t, s, 400, "POST", "/reconciliations", "", c[0]), "error.field", c[1])
	}
	if len(s.Log.Events) != events {
		t.Error("something that was refused is in the log")
	}
	check(t, do(t, s, 400, "GET", "/reconciliations?cursor=x", "", ""), "error.field", `"cursor"`)
	check(t, do(t, s, 400, "GET", "/reconciliations?limit=x", "", ""), "error.field", `"limit"`)
	for _, absent := range []string{"x", uuid.NewString()} {
		check(t, do(t, s, 404, "GET", "/reconciliations/"+absent, "", ""), "error.code", `"not_found"`)
	}
}

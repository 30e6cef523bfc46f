package e2e_test

import (
	"encoding/csv"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// billed waits until the bill of this month adds up so many attempts.
func billed(t *testing.T, client harness.Client, attempts int64) (period string, bill harness.Reply) {
	t.Helper()
	period = time.Now().UTC().Format("2006-01")
	harness.Eventually(t, "the bill has every attempt", func() bool {
		bill = client.Get(t, "/v1/bills/"+period)
		var n int64
		for _, line := range bill.Get("lines.#.attempts").Array() {
			n += line.Int()
		}
		return bill.Status == 200 && n == attempts
	})
	return period, bill
}

// A bill is the sum of its lines, a line the sum of its attempts, and usage and budgets
// say the same money: all of it over HTTP, as JSON and as tables.
//
// Rules: M7, M11, M14, X2.
func TestABillIsTracedToItsAttempts_M14_M11(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-503", "b/fake-words:5"}})
	s.config.Tenants[0].MonthlyUSD = "1.00"
	s.Apply(t, s.config)
	harness.Eventually(t, "the budget is known", func() bool { return s.client.Get(t, "/v1/budgets").Get("data.#").Int() == 1 })
	var attempts int64
	for range 3 {
		reply := s.client.Chat(t, "m", "hello")
		n, err := strconv.ParseInt(reply.Header.Get("X-Sluice-Attempts"), 10, 64)
		if reply.Status != 200 || err != nil {
			t.Fatal(reply)
		}
		attempts += n
	}
	period, bill := billed(t, s.client, attempts)
	charge := bill.Get("charge_nanousd").Int()
	if charge <= 0 || bill.Get("status").String() != "open" || bill.Get("adjustments").Raw != "[]" {
		t.Fatalf("%s", bill)
	}
	var lines int64
	for _, line := range bill.Get("lines").Array() {
		lines += line.Get("charge_nanousd").Int()
		var sum, n int64
		path := "/v1/bills/" + period + "/lines/" + line.Get("id").String() + "/attempts?limit=2"
		for cursor := ""; ; {
			page := s.client.Get(t, path+"&cursor="+cursor)
			for _, attempt := range page.Get("data").Array() {
				sum, n = sum+attempt.Get("charge_nanousd").Int(), n+1
				if trail := s.client.Trail(t, attempt.Get("request_id").String()); trail.Status != 200 {
					t.Errorf("the attempt's trail: %s", trail)
				}
			}
			if cursor = page.Get("next_cursor").String(); cursor == "" {
				break
			}
		}
		if sum != line.Get("charge_nanousd").Int() || n != line.Get("attempts").Int() {
			t.Errorf("line %s, but its %d attempts cost %d", line, n, sum)
		}
	}
	usage := s.client.Get(t, "/v1/usage?group_by=model,key,day")
	budget := s.client.Get(t, "/v1/budgets").Get("data.0")
	if lines != charge || usage.Get("data.0.charge_nanousd").Int() != charge || budget.Get("settled").Int() != charge {
		t.Errorf("lines %d, bill %d, usage %s, budget %s", lines, charge, usage.Body, budget)
	}
	if usage.Get("data.0.model").String() != "m" || usage.Get("data.0.day").String() != time.Now().UTC().Format("2006-01-02") ||
		usage.Get("data.0.key").String() == "" || usage.Get("next_cursor").Raw != "null" {
		t.Errorf("usage: %s", usage.Body)
	}
	if budget.Get("remaining").Int() != 1_000_000_000-charge || budget.Get("held").Int() != 0 || budget.Get("unit").String() != "nanousd" ||
		budget.Get("resets_at").String() == "" {
		t.Errorf("budget: %s", budget)
	}
	list := s.client.Get(t, "/v1/bills")
	if got := list.Get("data.0.charge_nanousd").Int(); got != charge || list.Get("data.0.period").String() != period {
		t.Errorf("list: %s", list.Body)
	}
	table := s.client.Do(t, "GET", "/v1/bills/"+period, "", "accept", "text/csv")
	rows, err := csv.NewReader(strings.NewReader(string(table.Body))).ReadAll()
	if err != nil || len(rows) != 1+len(bill.Get("lines").Array()) || rows[1][2] != bill.Get("lines.0.id").String() ||
		!strings.HasPrefix(table.Header.Get("Content-Type"), "text/csv") {
		t.Errorf("table %v, %v", rows, err)
	}
}

// Nobody reads another organization's bills, lines, usage or budgets, and a key without
// the scope reads nobody's.
//
// Rules: Z6.
func TestBillsAreTheTenantsOwn_Z6(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-ok"}})
	stranger, writer := s.worker.Client(s.Key(t, "umbrella")), s.worker.Client(s.Key(t, "acme", "inference"))
	s.client.Chat(t, "m", "hello")
	period, bill := billed(t, s.client, 1)
	line := "/v1/bills/" + period + "/lines/" + bill.Get("lines.0.id").String() + "/attempts"
	harness.Eventually(t, "the keys are known", func() bool {
		return stranger.Get(t, "/v1/bills").Status == 200 && writer.Get(t, "/v1/bills").Status == 403
	})
	for path, status := range map[string]int{
		"/v1/bills": 200, "/v1/bills/" + period: 404, line: 404, "/v1/usage?group_by=model": 200, "/v1/budgets": 200,
	} {
		reply := stranger.Get(t, path)
		if reply.Status != status || status == 200 && reply.Get("data").Raw != "[]" {
			t.Errorf("a stranger at %s: %s", path, reply)
		}
		if reply := writer.Get(t, path); reply.Status != 403 {
			t.Errorf("without the scope at %s: %s", path, reply)
		}
	}
	for _, path := range []string{
		"/v1/bills/2026-11' or 1=1--", "/v1/bills/" + period + "/lines/x/attempts", line + "?cursor=x", "/v1/usage?group_by=tenant",
		"/v1/usage?since=yesterday", "/v1/usage?since=2020-01-01", "/v1/usage?cursor=x", "/v1/usage?limit=-1",
	} {
		if reply := s.client.Get(t, strings.ReplaceAll(path, " ", "%20")); reply.Status != 400 && reply.Status != 404 {
			t.Errorf("%s: %s", path, reply)
		}
	}
}

// A price that was wrong is corrected in the log; the dry run shows by how much before
// anything changes; the rebuild beside the running worker does just that, and twice is
// once.
//
// Rules: M15, E4.
func TestAWrongPriceIsCorrected_M15(t *testing.T) {
	s := newScene(t, map[string][]string{"m": {"a/fake-words:5"}})
	began := time.Now().UTC().Add(-time.Minute).Format(time.RFC3339)
	s.client.Chat(t, "m", "hello")
	period, bill := billed(t, s.client, 1)
	charge := bill.Get("charge_nanousd").Int()
	until := time.Now().UTC().Format(time.RFC3339Nano)

	correct := func(args ...string) harness.Result {
		return s.Run(t, append([]string{"prices", "correct", "m-0@a", "--from", began}, args...)...)
	}
	for name, args := range map[string][]string{
		"no reason":        {"--to", until, "--input", "6", "--output", "30"},
		"no output price":  {"--to", until, "--input", "6", "--reason", "r"},
		"a negative price": {"--to", until, "--input", "-6", "--output", "30", "--reason", "r"},
		"the future":       {"--to", "2999-01-01", "--input", "6", "--output", "30", "--reason", "r"},
	} {
		if r := correct(args...); r.Code == 0 {
			t.Errorf("%s was accepted", name)
		}
	}
	if r := correct("--to", until, "--input", "6", "--output", "30", "--reason", "prices were halved"); r.Code != 0 {
		t.Fatal(r)
	}
	difference := func() gjson.Result {
		return gjson.Get(s.Must(t, "rebuild", "bills", "--dry-run", "--output", "json"), `tenants.#(tenant=="acme").difference_nanousd`)
	}
	if d := difference(); d.Int() != charge {
		t.Errorf("the dry run says %s; the price doubled, which is %d more", d.Raw, charge)
	}
	if now := s.client.Get(t, "/v1/bills/"+period).Get("charge_nanousd").Int(); now != charge {
		t.Errorf("the dry run changed the bill from %d to %d", charge, now)
	}
	for range 2 {
		s.Must(t, "rebuild", "bills")
		if now := s.client.Get(t, "/v1/bills/"+period).Get("charge_nanousd").Int(); now != 2*charge {
			t.Errorf("the rebuilt bill is %d, not %d", now, 2*charge)
		}
	}
	if d := difference(); d.Int() != 0 {
		t.Errorf("after the rebuild there is still %s", d.Raw)
	}
	s.Must(t, "verify")
	line := s.client.Get(t, "/v1/bills/"+period).Get("lines.0.id").String()
	attempt := s.client.Get(t, "/v1/bills/"+period+"/lines/"+line+"/attempts").Get("data.0")
	if !attempt.Get("corrected").Bool() || attempt.Get("charge_nanousd").Int() != 2*charge {
		t.Errorf("the attempt: %s", attempt)
	}
	if r := s.Run(t, "bills", "close", "--period", "2026-13"); r.Code == 0 || !strings.Contains(r.Stderr, "is not a month") {
		t.Errorf("a bill of no month was closed: %d, %s", r.Code, r.Stderr)
	}
	if r := s.Run(t, "bills", "close", "--period", period); r.Code == 0 || strings.Count(r.Stderr, "once the month is over") != 1 {
		t.Errorf("this month was closed: %+v", r)
	}
}

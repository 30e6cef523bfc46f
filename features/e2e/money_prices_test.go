package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// rates are a deployment's prices in USD per million tokens; nil is unknown.
type rates struct {
	input, output, read, write, write1h *big.Rat
	long                                *rates
	above                               int64
}

func ratesOf(data gjson.Result) rates {
	rate := func(name string) *big.Rat {
		text := data.Get(name)
		if !text.Exists() {
			return nil
		}
		r, ok := new(big.Rat).SetString(text.String())
		if !ok {
			panic("a rate in the log that is no number: " + text.Raw)
		}
		return r
	}
	r := rates{input: rate("input"), output: rate("output"), read: rate("cache_read"), write: rate("cache_write_5m"), write1h: rate("cache_write_1h")}
	if long := data.Get("long_context"); long.Exists() {
		tier := ratesOf(long)
		r.long, r.above = &tier, long.Get("above_input_tokens").Int()
	}
	return r
}

// cost prices tokens in exact fractions and rounds once, half away from zero, to whole
// nano-USD. Parts that exceed their whole are priced as nothing but that whole.
func (r rates) cost(u tokensUsed) int64 {
	input, output := max(u.input, 0), max(u.output, 0)
	cached, written, written1h := max(u.cached, 0), max(u.written, 0), max(u.written1h, 0)
	if cached+written+written1h > input {
		cached, written, written1h = 0, 0, 0
	}
	pick := func(of func(rates) *big.Rat, otherwise *big.Rat) *big.Rat {
		if r.long != nil && input > r.above && of(*r.long) != nil {
			return of(*r.long)
		}
		if of(r) != nil {
			return of(r)
		}
		return otherwise
	}
	in := pick(func(r rates) *big.Rat { return r.input }, nil)
	out := pick(func(r rates) *big.Rat { return r.output }, nil)
	if in == nil || out == nil {
		return 0
	}
	sum := new(big.Rat)
	for _, part := range []struct {
		tokens int64
		rate   *big.Rat
	}{
		{input - cached - written - written1h, in},
		{cached, pick(func(r rates) *big.Rat { return r.read }, in)},
		{written, pick(func(r rates) *big.Rat { return r.write }, in)},
		{written1h, pick(func(r rates) *big.Rat { return r.write1h }, in)},
		{output, out},
	} {
		sum.Add(sum, new(big.Rat).Mul(big.NewRat(part.tokens, 1), part.rate))
	}
	// USD a million tokens times tokens, in nano-USD: times a thousand.
	sum.Mul(sum, big.NewRat(1000, 1))
	doubled := new(big.Int).Mul(sum.Num(), big.NewInt(2))
	doubled.Add(doubled, sum.Denom())
	return doubled.Div(doubled, new(big.Int).Mul(sum.Denom(), big.NewInt(2))).Int64()
}

// correctedRates are what is written for some deployments afterwards. Where the first
// half of the drill is concerned they replace what was settled.
var correctedRates = map[string]struct {
	flags []string
	rates gjson.Result
}{
	"plain-0@b": {
		[]string{"--input", "2.5001", "--output", "12.4999", "--cache-read", "0.25"},
		gjson.Parse(`{"input":"2.5001","output":"12.4999","cache_read":"0.25"}`),
	},
	"cached-0@b": {[]string{"--input", "0.5", "--output", "2"}, gjson.Parse(`{"input":"0.5","output":"2"}`)},
	"written-0@m": {
		[]string{"--input", "3.1415926", "--output", "14", "--cache-read", "0.3", "--cache-write-5m", "3.9"},
		gjson.Parse(`{"input":"3.1415926","output":"14","cache_read":"0.3","cache_write_5m":"3.9"}`),
	},
	"long-0@b": {
		[]string{"--input", "0.8", "--output", "3.2", "--cache-read", "0.08", "--long-above", "30", "--long-input", "2.2", "--long-output", "6.6"},
		gjson.Parse(`{"input":"0.8","output":"3.2","cache_read":"0.08","long_context":{"above_input_tokens":30,"input":"2.2","output":"6.6"}}`),
	},
	"rough-0@a":   {[]string{"--input", "0", "--output", "0"}, gjson.Parse(`{"input":"0","output":"0"}`)},
	"reasons-0@r": {[]string{"--input", "1.2", "--output", "4.8"}, gjson.Parse(`{"input":"1.2","output":"4.8"}`)},
}

// middle is a time that half of the settlements come before.
func (a *moneyAudit) middle() (from, middle time.Time) {
	var at []time.Time
	for _, one := range a.attempts {
		if one.settled {
			at = append(at, one.observed)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	return at[0], at[len(at)/2]
}

// correctHalf corrects the prices of what was settled in the first half, and compares
// what the bills say then with what each settlement's usage says, twice.
func (a *moneyAudit) correctHalf(t *testing.T, in *harness.Installation, reader func(string) harness.Client) (lines, attempts int) {
	t.Helper()
	from, to := a.middle()
	before := readLines(t, a, reader)
	want := map[string]int64{} // by line: by how much its charge changes
	organizations := map[string]int64{}
	for _, one := range a.attempts {
		now, ok := correctedRates[one.deployment]
		if !ok || !one.settled || one.observed.Before(from) || !one.observed.Before(to) || one.basis == "unknown" {
			continue
		}
		attempts++
		price := ratesOf(now.rates).cost(one.usage)
		if one.waived || one.owner == "workspace" {
			price = 0
		}
		want[one.line()] += price - one.charge
		organizations[one.tenant] += price - one.charge
	}
	for deployment, now := range correctedRates {
		in.Must(t, slices.Concat([]string{
			"prices", "correct", deployment, "--reason", "the drill says so",
			"--from", from.UTC().Format(time.RFC3339Nano), "--to", to.UTC().Format(time.RFC3339Nano),
		}, now.flags)...)
	}
	dry := in.Must(t, "rebuild", "bills", "--dry-run", "--output", "json")
	for tenant := range a.organizations() {
		said := gjson.Get(dry, fmt.Sprintf("tenants.#(tenant==%q).difference_nanousd", tenant))
		if said.Int() != organizations[tenant] || !said.Exists() {
			t.Errorf("%s: the dry run says %s nano-USD, the usage %d", tenant, said.Raw, organizations[tenant])
		}
	}
	if now := readLines(t, a, reader); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Error("the dry run changed bills")
	}
	var digests []string
	for range 2 {
		in.Must(t, "rebuild", "bills")
		digests = append(digests, billDigest(t, in))
		after := readLines(t, a, reader)
		lines = compareLines(t, before, after, want)
	}
	if digests[0] != digests[1] {
		t.Errorf("the second rebuild left other bytes:\n%s\n%s", digests[0], digests[1])
	}
	return lines, attempts
}

// compareLines: the lines that had to change did, by what they had to, and no other.
func compareLines(t *testing.T, before, after map[string]gjson.Result, want map[string]int64) (changed int) {
	t.Helper()
	if len(before) != len(after) {
		t.Errorf("%d lines before the correction, %d after it", len(before), len(after))
	}
	for key, was := range before {
		is := after[key]
		difference := is.Get("charge_nanousd").Int() - was.Get("charge_nanousd").Int()
		if difference != want[key] {
			t.Errorf("line %s changed by %d nano-USD, not by %d", key, difference, want[key])
		}
		_, covered := want[key]
		if !covered && is.Raw != was.Raw {
			t.Errorf("line %s changed without a reason:\n%s\n%s", key, was.Raw, is.Raw)
		}
		if difference != 0 {
			changed++
		}
	}
	return changed
}

// readLines are all lines of all bills.
func readLines(t *testing.T, a *moneyAudit, reader func(string) harness.Client) map[string]gjson.Result {
	t.Helper()
	all := map[string]gjson.Result{}
	for tenant := range a.organizations() {
		client := reader(tenant)
		for _, period := range client.Get(t, "/v1/bills").Get("data.#.period").Array() {
			for _, line := range client.Get(t, "/v1/bills/"+period.String()).Get("lines").Array() {
				all[lineKey(tenant, period.String(), line)] = line
			}
		}
	}
	return all
}

// billDigest is a hash over every row of the bills' tables.
func billDigest(t *testing.T, in *harness.Installation) string {
	t.Helper()
	h := sha256.New()
	for _, table := range strings.Fields("ledger_attempts bill_lines usage_days bill_closings bill_corrections") {
		in.Query(t, `select x::text from `+table+` x order by x::text collate "C"`, func(rows pgx.Rows) error {
			var row string
			err := rows.Scan(&row)
			fmt.Fprintln(h, table, row)
			return err
		})
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

package api

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/projections/bills"
)

// Which form a caller gets: the format that it names, or what it accepts first.
//
// Rules: M14.
func TestWhoGetsATable_M14(t *testing.T) {
	for _, tc := range []struct {
		format, accept string
		want           bool
	}{
		{"", "", false},
		{"csv", "", true},
		{"json", "text/csv", false},
		{"", "text/csv", true},
		{"", "text/csv; charset=utf-8, */*", true},
		{"", "application/json, text/csv", false},
		{"", "*/*", false},
		{"", ";;;,text/csv", true},
	} {
		c := &call{Request: &edge.Request{Query: url.Values{}, Header: http.Header{"Accept": {tc.accept}}}}
		if tc.format != "" {
			c.Query.Set("format", tc.format)
		}
		if got := wantsCSV(c); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// A name that somebody chose is not run by the spreadsheet that opens the bill, and a
// credit stays a number there.
//
// Rules: M14.
func TestABillAsATableIsOnlyText_M14(t *testing.T) {
	route := "+1\"2\n,3"
	reply := billTable(bills.Bill{
		Period: "2026-12", Status: bills.Open,
		Lines: []bills.Line{{ID: "l1", Model: "=HYPERLINK(1)", Deployment: &route}, {ID: "l2", Model: "m"}},
		Adjustments: []bills.Adjustment{{
			ID: "a1", OfPeriod: "2026-11", Reason: "@late", Attempts: 2, Amounts: request.Amounts{Charge: -5},
		}},
	}).reply()
	rows, err := csv.NewReader(strings.NewReader(string(reply.Body))).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatal(rows, err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, cell := range []struct {
		row        int
		name, want string
	}{
		{1, "model", "'=HYPERLINK(1)"},
		{1, "deployment", "'+1\"2\n,3"},
		{2, "deployment", ""},
		{2, "of_period", "2026-12"},
		{3, "reason", "'@late"},
		{3, "of_period", "2026-11"},
		{3, "charge_nanousd", "-5"},
		{3, "input_tokens", ""},
	} {
		if got := rows[cell.row][column[cell.name]]; got != cell.want {
			t.Errorf("%s of row %d is %q, want %q", cell.name, cell.row, got, cell.want)
		}
	}
}

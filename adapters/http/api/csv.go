package api

import (
	"bytes"
	"encoding/csv"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
)

// nextCursor is where a CSV page, which has no room for it, says what follows.
const nextCursor = "X-Sluice-Next-Cursor"

// wantsCSV: ?format=csv, or a table is what the caller accepts.
func wantsCSV(c *call) bool {
	if format := c.Query.Get("format"); format != "" {
		return format == "csv"
	}
	for part := range strings.SplitSeq(c.Header.Get("Accept"), ",") {
		kind, _, err := mime.ParseMediaType(part)
		if err == nil && (kind == "text/csv" || kind == "application/json") {
			return kind == "text/csv" // whichever is named first
		}
	}
	return false
}

// table is a CSV document that is being written.
type table struct {
	out bytes.Buffer
	csv *csv.Writer
}

func newTable(columns ...string) *table {
	t := &table{}
	t.csv = csv.NewWriter(&t.out)
	_ = t.csv.Write(columns) // a buffer takes everything
	return t
}

func (t *table) row(cells ...string) { _ = t.csv.Write(cells) }

func (t *table) reply() *edge.Reply {
	t.csv.Flush()
	header := http.Header{"Content-Type": {"text/csv; charset=utf-8; header=present"}}
	setID(header, newID())
	return &edge.Reply{Status: http.StatusOK, Header: header, Body: t.out.Bytes()}
}

// text is a cell that people named. A spreadsheet takes what begins like a formula for
// one and runs it; behind an apostrophe it is text.
func text(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func optional(s *string) string {
	if s == nil {
		return ""
	}
	return text(*s)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// amountColumns are the five amounts, in nano-USD.
var amountColumns = []string{"list_nanousd", "charge_nanousd", "provider_cost_nanousd", "subsidy_nanousd", "surcharge_nanousd"}

func amountCells(a request.Amounts) []string {
	cells := make([]string, 0, len(amountColumns))
	for _, n := range []money.NanoUSD{a.List, a.Charge, a.ProviderCost, a.Subsidy, a.Surcharge} {
		cells = append(cells, number(int64(n)))
	}
	return cells
}

func columns(names ...string) []string { return slices.Concat(names, amountColumns) }

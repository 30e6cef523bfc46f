package adminapi_test

import (
	"strings"
	"testing"
)

// What a price truly was is written with its actor, needs no revision, and changes no
// price from now on; what is wrong with it is named, field by field (M15, Z7).
func TestPriceCorrections_M15_Z7(t *testing.T) {
	s := start(t)
	const path = "/deployments/a@east/price-corrections"
	good := `{"from":"2026-01-01T00:00:00Z","to":"2026-01-15T12:00:00+02:00","prices":{"input":"2.50","output":"7"},"reason":"read wrongly","source":"price page"}`
	price := string(do(t, s, 200, "GET", "/deployments/a@east/prices", "", "").Field("input"))
	check(t, do(t, s, 200, "GET", path, "", ""), "data", "[]")
	created := do(t, s, 201, "POST", path, "", good)
	check(t, created, "deployment", `"a@east"`)
	check(t, created, "to", `"2026-01-15T10:00:00Z"`)
	check(t, created, "prices.input", `"2.5"`)
	check(t, created, "prices.source", `"price page"`)
	listed := string(do(t, s, 200, "GET", path, "", "").Body)
	for _, field := range []string{"from", "to", "prices", "reason", "actor"} {
		mentions(t, listed, `"`+field+`":`+created.Field(field))
	}
	check(t, do(t, s, 200, "GET", "/deployments/a@east/prices", "", ""), "input", price)

	before := len(s.Log.Events)
	for field, body := range map[string]string{
		"from":          strings.Replace(good, "2026-01-01T00:00:00Z", "yesterday", 1),
		"to":            strings.Replace(good, "2026-01-15T12:00:00+02:00", "2999-01-01T00:00:00Z", 1),
		"prices.input":  strings.Replace(good, `"input":"2.50",`, "", 1),
		"prices.output": strings.Replace(good, `"7"`, `"-7"`, 1),
		"reason":        strings.Replace(good, "read wrongly", "", 1),
		"rates":         strings.Replace(good, `"prices"`, `"rates"`, 1),
	} {
		mentions(t, string(do(t, s, 400, "POST", path, "", body).Body), field)
	}
	do(t, s, 404, "POST", "/deployments/nobody/price-corrections", "", good)
	do(t, s, 400, "POST", path, "", `[]`)
	if len(s.Log.Events) != before {
		t.Error("a refused correction was written")
	}
}

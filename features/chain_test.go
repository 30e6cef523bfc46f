package features_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cucumber/godog"
	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
	"github.com/sluice-gateway/sluice/domain/walk/sim"
)

// routeOf reads one row of a chain's table. What a column does not say is
// ordinary: one key, a known price, a wide window, the model that was asked for.
func routeOf(index int, cells map[string]string) (walk.Rung, error) {
	r := route(index)
	r.Deployment.ID, r.Provider.ID = cells["route"], cells["route"]
	if model := cells["model"]; model != "" {
		r.Model, r.Root = model, model == "fable"
	}
	if stage := cells["stage"]; stage != "" {
		r.Stage, _ = strconv.Atoi(stage)
	}
	if mode := cells["mode"]; mode != "" {
		r.Stage, r.Policy.FailoverMode, r.Policy.ThrottleCacheThreshold = index, catalog.FailoverMode(mode), nil
	}
	r.Unresolved = request.SkipReason(cells["skip"])
	r.BaseURLRefused = cells["base url"] == "inside"
	if keys, ok := cells["keys"]; ok {
		r.Provider.Keys = nil
		for _, key := range words(keys) {
			r.Provider.Keys = append(r.Provider.Keys, catalog.ProviderKey{ID: key})
		}
	}
	r.Owner = request.Owner(cells["owner"])
	r.Override = cells["override"] != ""
	if percent := cells["surcharge"]; percent != "" {
		d, err := decimal.NewFromString(percent)
		if err != nil {
			return r, err
		}
		r.Surcharge = &d
	}
	r.Provider.KeyStrategy = catalog.KeyStrategy(cells["strategy"])
	for _, c := range words(cells["capabilities"]) {
		r.Deployment.Capabilities = append(r.Deployment.Capabilities, catalog.Capability(c))
	}
	if window := cells["window"]; window != "" {
		n, err := strconv.ParseInt(window, 10, 64)
		if err != nil {
			return r, err
		}
		r.Deployment.Context.Total = n
	}
	if price, ok := cells["price"]; ok {
		r.Deployment.Prices = money.Prices{}
		if price != "" {
			d, err := decimal.NewFromString(price)
			if err != nil {
				return r, err
			}
			r.Deployment.Prices = money.Prices{Input: &d, Output: &d}
		}
	}
	return r, nil
}

// rows reads a table whose first row names the columns.
func rows(table *godog.Table) []map[string]string {
	var list []map[string]string
	for _, row := range table.Rows[1:] {
		cells := map[string]string{}
		for i, cell := range row.Cells {
			cells[table.Rows[0].Cells[i].Value] = cell.Value
		}
		list = append(list, cells)
	}
	return list
}

// words splits a list; "none" is an empty one.
func words(list string) []string {
	if list == "" || list == "none" {
		return nil
	}
	parts := strings.Split(list, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// endingOf reads how one call ends:
//
//	ok | [committed] class [@time] [retry-after time]
func endingOf(text string) (sim.Ending, error) {
	text, asked, told := strings.Cut(text, " retry-after ")
	text, committed := strings.CutPrefix(text, "committed ")
	class, after, timed := strings.Cut(text, "@")
	end := served()
	end.Committed = committed
	var err error
	if timed {
		if end.After, err = time.ParseDuration(after); err != nil {
			return end, err
		}
	}
	if class == "ok" {
		return end, nil
	}
	f := failed(failure.Class(class)).Failure
	if f.Class == failure.ServerError {
		f.Status = 503
	}
	if told {
		f.Retry.Told = true
		if f.Retry.After, err = time.ParseDuration(asked); err != nil {
			return end, err
		}
	}
	if !known(f.Class) {
		return end, fmt.Errorf("no class %q", class)
	}
	end.Failure = f
	return end, nil
}

func known(c failure.Class) bool {
	for _, k := range failure.Classes() {
		if k == c {
			return true
		}
	}
	return false
}

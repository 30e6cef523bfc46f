package catalog_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

func tokensPerDay(n int64) *catalog.Allowances {
	return &catalog.Allowances{Overall: &catalog.AllowanceLimits{PerDay: n}}
}

// withPromotion is the fixture with a promotion of model a for acme in November.
func withPromotion() catalog.Objects {
	o := fixture()
	o.Tenants[0].Promotions = []catalog.Promotion{{
		ID: "launch", Models: []string{"b", "a"}, Starts: "2026-11-01", Ends: "2026-12-01",
		FreeInputTokens: &catalog.Allowances{
			PerModel: &catalog.AllowanceLimits{PerHour: 100, PerDayUSD: "1.50"},
			Overall:  &catalog.AllowanceLimits{Total: 5000},
		},
		FreeOutputTokens: tokensPerDay(70),
	}}
	return o
}

// Whatever is wrong with a promotion is told at its field.
//
// Rules: M10, C13.
func TestBadPromotionsAreRefused_M10_C13(t *testing.T) {
	if problems := catalog.Validate(withPromotion()); len(problems) > 0 {
		t.Fatalf("the good one is refused: %+v", problems)
	}
	second := func(change func(*catalog.Promotion)) func(*catalog.Objects) {
		return func(o *catalog.Objects) {
			p := catalog.Promotion{ID: "later", Models: []string{"a"}, Starts: "2026-12-01", FreeInputTokens: tokensPerDay(1)}
			change(&p)
			o.Tenants[0].Promotions = append(o.Tenants[0].Promotions, p)
		}
	}
	first := func(change func(*catalog.Promotion)) func(*catalog.Objects) {
		return func(o *catalog.Objects) { change(&o.Tenants[0].Promotions[0]) }
	}
	for _, c := range []struct {
		path, reason string
		edit         func(*catalog.Objects)
	}{
		{".id", "is missing", first(func(p *catalog.Promotion) { p.ID = "" })},
		{".id", "may hold only", first(func(p *catalog.Promotion) { p.ID = "a/b" })},
		{".models", "is missing", first(func(p *catalog.Promotion) { p.Models = nil })},
		{".models[0]", "does not exist", first(func(p *catalog.Promotion) { p.Models[0] = "nothing" })},
		{".models[1]", "defined twice", first(func(p *catalog.Promotion) { p.Models = []string{"a", "a"} })},
		{".starts", "neither a date", first(func(p *catalog.Promotion) { p.Starts = "soon" })},
		{".ends", "neither a date", first(func(p *catalog.Promotion) { p.Ends = "2026-13-01" })},
		{".ends", "must be after starts", first(func(p *catalog.Promotion) { p.Ends = p.Starts })},
		{"", "gives nothing away", first(func(p *catalog.Promotion) { p.FreeInputTokens, p.FreeOutputTokens = nil, nil })},
		{".free_output_tokens", "has no limit", first(func(p *catalog.Promotion) { p.FreeOutputTokens = &catalog.Allowances{} })},
		{".free_output_tokens", "has no limit", first(func(p *catalog.Promotion) {
			p.FreeOutputTokens = &catalog.Allowances{Overall: &catalog.AllowanceLimits{}}
		})},
		{".free_output_tokens.overall.per_day", "not between", first(func(p *catalog.Promotion) { p.FreeOutputTokens.Overall.PerDay = -1 })},
		{".free_output_tokens.overall.total", "not between", first(func(p *catalog.Promotion) { p.FreeOutputTokens.Overall.Total = 1e15 + 1 })},
		{".free_input_tokens.per_model.per_day_usd", "not an amount", first(func(p *catalog.Promotion) { p.FreeInputTokens.PerModel.PerDayUSD = "much" })},
		{".free_input_tokens.per_model.per_day_usd", "more than 0", first(func(p *catalog.Promotion) { p.FreeInputTokens.PerModel.PerDayUSD = "0" })},
		{".free_input_tokens.per_model.per_hour_usd", "in tokens or in money", first(func(p *catalog.Promotion) {
			p.FreeInputTokens.PerModel.PerHourUSD = "1"
		})},
		{".cached_input_free", "needs free_input_tokens", first(func(p *catalog.Promotion) { p.FreeInputTokens, p.CachedInputFree = nil, true })},
	} {
		t.Run(c.path+" "+c.reason, func(t *testing.T) {
			o := withPromotion()
			c.edit(&o)
			expectProblem(t, catalog.Validate(o), "tenants[0].promotions[0]"+c.path, c.reason)
		})
	}
	for name, c := range map[string]struct {
		edit    func(*catalog.Objects)
		refused bool
	}{
		"one after the other":        {second(func(*catalog.Promotion) {}), false},
		"at once":                    {second(func(p *catalog.Promotion) { p.Starts = "2026-11-30T23:59:59Z" }), true},
		"for ever beside November":   {second(func(p *catalog.Promotion) { p.Starts = "" }), true},
		"the end in another zone":    {second(func(p *catalog.Promotion) { p.Starts = "2026-12-01T01:00:00+01:00" }), false},
		"before it":                  {second(func(p *catalog.Promotion) { p.Starts, p.Ends = "", "2026-11-01" }), false},
		"of another organization":    {func(o *catalog.Objects) { o.Tenants[1].Promotions = o.Tenants[0].Promotions }, false},
		"another with the same name": {second(func(p *catalog.Promotion) { p.ID = "launch" }), true},
	} {
		t.Run(name, func(t *testing.T) {
			o := withPromotion()
			c.edit(&o)
			if problems := catalog.Validate(o); (len(problems) > 0) != c.refused {
				t.Errorf("problems: %+v", problems)
			}
		})
	}
}

// A problem names the promotion as an object, for whoever edits it alone.
func TestPromotionProblemsAreFindings_M10(t *testing.T) {
	after := withPromotion()
	after.Tenants[0].Promotions[0].Models = []string{"gone"}
	findings := catalog.NewFindings(withPromotion(), after)
	if len(findings) != 1 || findings[0].Object != "promotion/acme/launch" || findings[0].Field != "models[0]" {
		t.Errorf("%+v", findings)
	}
}

// Two ways to write one promotion are one catalog, and another allowance is another.
//
// Rules: C1.
func TestPromotionsHaveOneForm_C1(t *testing.T) {
	id := func(edit func(*catalog.Promotion)) string {
		o := withPromotion()
		edit(&o.Tenants[0].Promotions[0])
		return catalog.NewSnapshot(o.Canonical()).ID
	}
	base := id(func(*catalog.Promotion) {})
	for name, c := range map[string]struct {
		edit func(*catalog.Promotion)
		same bool
	}{
		"a date is its midnight":  {func(p *catalog.Promotion) { p.Starts = "2026-11-01T00:00:00Z" }, true},
		"another zone":            {func(p *catalog.Promotion) { p.Ends = "2026-12-01T02:00:00+02:00" }, true},
		"another order of models": {func(p *catalog.Promotion) { p.Models = []string{"a", "b"} }, true},
		"1.50 is 1.5":             {func(p *catalog.Promotion) { p.FreeInputTokens.PerModel.PerDayUSD = "1.5" }, true},
		"nothing overall":         {func(p *catalog.Promotion) { p.FreeOutputTokens.PerModel = &catalog.AllowanceLimits{} }, true},
		"another limit":           {func(p *catalog.Promotion) { p.FreeOutputTokens.Overall.PerDay = 71 }, false},
		"cached input too":        {func(p *catalog.Promotion) { p.CachedInputFree = true }, false},
	} {
		if got := id(c.edit); (got == base) != c.same {
			t.Errorf("%s: %s, base %s", name, got, base)
		}
	}
}

// A promotion is written as its own event, and the organization's revision counts it.
//
// Rules: C1, C3.
func TestAPromotionHasItsOwnStream_C1_C3(t *testing.T) {
	without := folded(history(t, fixture()))
	changes := catalog.Diff(without, withPromotion())
	if len(changes) != 1 || changes[0].Stream != "promotion/acme/launch" || typeName(changes[0].Events[0]) != "PromotionDefined" {
		t.Fatalf("%+v", changes)
	}
	with := folded(history(t, fixture(), withPromotion()))
	tenant := catalog.ObjectID{Kind: catalog.KindTenant, Name: "acme"}
	if with.RevisionOf(tenant) != without.RevisionOf(tenant)+1 || with.RevisionOfAll(catalog.KindPromotion, "acme") != 1 {
		t.Errorf("revisions %d, %d, of the list %d", without.RevisionOf(tenant), with.RevisionOf(tenant), with.RevisionOfAll(catalog.KindPromotion, "acme"))
	}
	if diff := cmp.Diff(withPromotion().Canonical(), with.Objects()); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	gone := catalog.Diff(with, fixture())
	if len(gone) != 1 || typeName(gone[0].Events[0]) != "PromotionRemoved" {
		t.Errorf("%+v", gone)
	}
}

// A promotion runs from its first moment up to its last, which is not one of its own.
//
// Rules: M10.
func TestAPromotionRunsInUTC_M10(t *testing.T) {
	p := withPromotion().Tenants[0].Promotions[0]
	for at, want := range map[string]bool{
		"2026-10-31T23:59:59Z":      false,
		"2026-11-01T00:00:00Z":      true,
		"2026-11-01T00:30:00+01:00": false,
		"2026-11-30T23:59:59Z":      true,
		"2026-12-01T00:00:00Z":      false,
	} {
		moment, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if p.Runs(moment) != want {
			t.Errorf("at %s: %v", at, !want)
		}
	}
	p.Starts, p.Ends = "", ""
	if !p.Runs(testTime) {
		t.Error("without an interval it always runs")
	}
}

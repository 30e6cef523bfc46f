package catalog_test

import (
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// laidOut is a plan in one line, a stage between bars: what each rung calls, by whose
// credential, at which surcharge, or why it is skipped.
func laidOut(t *testing.T, o catalog.Objects, tenant, name string) string {
	t.Helper()
	plan, err := catalog.NewSnapshot(o.Canonical()).Resolve(catalog.Ask{Tenant: tenant, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	var stages []string
	index := 0
	for _, s := range plan.Stages {
		var rungs []string
		for _, r := range s.Rungs {
			text := r.Rung.Connection + r.Rung.Deployment + r.Rung.Model
			if r.Surcharge != nil {
				text += " +" + r.Surcharge.String()
			}
			if r.Skip != "" {
				text += " " + r.Skip
			}
			if r.Index < index && index > 0 {
				t.Errorf("rung %s is number %d behind %d", text, r.Index, index)
			}
			index = r.Index
			rungs = append(rungs, text)
		}
		stages = append(stages, strings.Join(rungs, ", "))
	}
	return strings.Join(stages, " | ")
}

// The operator's rungs of a model follow behind everything that an organization's own
// chain says, as a stage of their own; only where the model offers it and the
// organization agreed, and only behind rungs of its own.
//
// Rules: M12, N16, N19, C6.
func TestSurchargeRungsFollowTheOwn_M12(t *testing.T) {
	own, west, a := catalog.Rung{Connection: "own"}, catalog.Rung{Deployment: "b@west"}, catalog.Rung{Model: "a"}
	for name, tc := range map[string]struct {
		chain           []catalog.Rung
		offered, agreed bool
		want            string
	}{
		"the operator's rungs are appended":           {[]catalog.Rung{own}, true, true, "own | b@east +7.5, b@west +7.5"},
		"nothing without the organization's word":     {[]catalog.Rung{own}, true, false, "own"},
		"nothing without the operator's word":         {[]catalog.Rung{own}, false, true, "own"},
		"what the chain names comes first, and once":  {[]catalog.Rung{own, west}, true, true, "own | b@west +7.5, b@east +7.5"},
		"and is skipped where nobody agreed":          {[]catalog.Rung{own, west}, true, false, "own | b@west surcharge_not_enabled"},
		"and is what it says where nothing is asked":  {[]catalog.Rung{own, west}, false, true, "own | b@west"},
		"a rung in front of the own ones is ordinary": {[]catalog.Rung{west, own}, true, true, "b@west | own | b@east +7.5"},
		"also where nobody agreed":                    {[]catalog.Rung{west, own}, true, false, "b@west | own"},
		"a reference comes before a surcharge":        {[]catalog.Rung{own, a}, true, true, "own | a@east | b model_already_visited | a@west | b@east +7.5, b@west +7.5"},
		"a chain without connections has none":        {[]catalog.Rung{west}, true, true, "b@west"},
	} {
		o := withConnection(tc.chain...)
		o.Tenants[0].SurchargeFallback = tc.agreed
		if tc.offered {
			o.Models[1].Surcharge = rate("7.50")
		}
		if problems := catalog.Validate(o); len(problems) > 0 {
			t.Errorf("%s: %+v", name, problems)
		}
		got := laidOut(t, o, "acme", "b")
		// The reference's own stages are another test's.
		got = strings.Replace(got, "a@east, b model_already_visited", "a@east | b model_already_visited", 1)
		if got != tc.want {
			t.Errorf("%s:\nwant %s\ngot  %s", name, tc.want, got)
		}
		if got := laidOut(t, o, "zeta", "b"); strings.Contains(got, "+") || strings.Contains(got, "surcharge") {
			t.Errorf("%s: another organization gets %s", name, got)
		}
	}
}

// A percentage is one, within bounds; and what an organization's word adds to a plan
// counts against its bounds when it is written.
//
// Rules: M12, N18.
func TestSurchargeIsValidated_M12(t *testing.T) {
	for percent, reason := range map[string]string{
		"0": "", "1000": "", "7.123456": "", "-1": "not between", "1000.01": "not between",
		"10000": "at most 4 digits", "1e9": "at most 4 digits", "0.1234567": "at most 4 digits",
	} {
		o := fixture()
		o.Models[1].Surcharge = rate(percent)
		problems := catalog.Validate(o)
		if (reason == "") != (len(problems) == 0) || reason != "" && (problems[0].Path != "models[1].surcharge" || !strings.Contains(problems[0].Reason, reason)) {
			t.Errorf("%s: %+v", percent, problems)
		}
	}
	o := withConnection(catalog.Rung{Connection: "own"})
	o.Models[1].Surcharge = rate("5")
	o.Models[1].Chain, o.Classes, o.Tenants[0].RoutingRules = nil, nil, nil
	o.Models[0].Chain = o.Models[0].Chain[:1]
	for i := range catalog.MaxRungs {
		d := o.Deployments[2]
		d.ID = "b@" + strings.Repeat("x", i%100+1) + strings.Repeat("y", i/100)
		o.Deployments = append(o.Deployments, d)
		o.Models[1].Chain = append(o.Models[1].Chain, catalog.Rung{Deployment: d.ID})
	}
	if problems := catalog.Validate(o); len(problems) != 0 {
		t.Fatalf("%+v", problems)
	}
	o.Tenants[0].SurchargeFallback = true
	if problems := catalog.Validate(o); len(problems) != 1 || problems[0].Path != "tenants[0].chains[0].chain" || !strings.Contains(problems[0].Reason, "256 rungs") {
		t.Errorf("%+v", problems)
	}
}

package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

func hook(change func(*catalog.Webhook)) catalog.Webhook {
	w := catalog.Webhook{ID: "ops", URL: "https://hooks.example.test/x", Env: "HOOK_SECRET"}
	change(&w)
	return w
}

// What a webhook may be, and that an organization's may not ask for what is about no
// organization.
//
// Rules: U4, C14.
func TestWebhooksAreValidated_U4_C14(t *testing.T) {
	for name, c := range map[string]struct {
		hook   catalog.Webhook
		tenant bool
		want   string
	}{
		"fine":             {hook: hook(func(*catalog.Webhook) {})},
		"a tenant's, fine": {hook: hook(func(w *catalog.Webhook) { w.Events = []catalog.WebhookEvent{catalog.HookBillClosed} }), tenant: true},
		"plain http":       {hook: hook(func(w *catalog.Webhook) { w.URL = "http://hooks.corp:8080/?a=1" })},
		"stored":           {hook: hook(func(w *catalog.Webhook) { w.Env, w.Stored = "", true })},
		"no id":            {hook: hook(func(w *catalog.Webhook) { w.ID = "" }), want: "id: is missing"},
		"no url":           {hook: hook(func(w *catalog.Webhook) { w.URL = "" }), want: "url: is missing"},
		"no host":          {hook: hook(func(w *catalog.Webhook) { w.URL = "https:///x" }), want: "url: is not an absolute URL"},
		"another scheme":   {hook: hook(func(w *catalog.Webhook) { w.URL = "ftp://hooks.example.test" }), want: "neither http nor https"},
		"a password":       {hook: hook(func(w *catalog.Webhook) { w.URL = "https://u:hunter2@hooks.example.test" }), want: "a secret never stands in configuration"},
		"a fragment":       {hook: hook(func(w *catalog.Webhook) { w.URL += "#x" }), want: "fragment"},
		"no secret":        {hook: hook(func(w *catalog.Webhook) { w.Env = "" }), want: "says nowhere where the secret is"},
		"two secrets":      {hook: hook(func(w *catalog.Webhook) { w.Stored = true }), want: "one or the other"},
		"a pasted secret":  {hook: hook(func(w *catalog.Webhook) { w.Env = "whsec_hunter2=" }), want: "is not the name of an environment variable"},
		"unknown event":    {hook: hook(func(w *catalog.Webhook) { w.Events = []catalog.WebhookEvent{"moon"} }), want: `"moon" is none of`},
		"an event twice": {hook: hook(func(w *catalog.Webhook) {
			w.Events = []catalog.WebhookEvent{catalog.HookBillClosed, catalog.HookBillClosed}
		}), want: "defined twice"},
		"of nobody": {hook: hook(func(w *catalog.Webhook) {
			w.Events = []catalog.WebhookEvent{catalog.HookCircuitOpened}
		}), tenant: true, want: "about no organization"},
	} {
		t.Run(name, func(t *testing.T) {
			o, at := fixture(), "webhooks[0]"
			if c.tenant {
				o.Tenants[0].Webhooks, at = []catalog.Webhook{c.hook}, "tenants[0].webhooks[0]"
			} else {
				o.Webhooks = []catalog.Webhook{c.hook}
			}
			problems := catalog.Validate(o)
			if c.want == "" {
				if len(problems) > 0 {
					t.Errorf("refused: %+v", problems)
				}
				return
			}
			if len(problems) != 1 || !strings.HasPrefix(problems[0].Path, at) || !strings.Contains(problems[0].Path+": "+problems[0].Reason, c.want) {
				t.Errorf("got %+v", problems)
			}
			if len(problems) > 0 && strings.Contains(problems[0].Reason, "hunter2") {
				t.Errorf("a secret is repeated: %+v", problems)
			}
			if finding := catalog.NewFindings(fixture(), o); len(finding) != 1 || !strings.Contains(finding[0].Object, "webhook/") {
				t.Errorf("found %+v", finding)
			}
		})
	}
	o := fixture()
	for range 17 {
		o.Webhooks = append(o.Webhooks, hook(func(*catalog.Webhook) {}))
	}
	if problems := catalog.Validate(o); len(problems) != 1 || problems[0].Path != "webhooks" {
		t.Errorf("17 webhooks: %+v", problems)
	}
}

// The operator's webhook and an organization's of the same id are two objects, each
// with its own stream, history and secret.
//
// Rules: C1, C8, U4.
func TestWebhooksAreObjectsLikeOthers_C1_C8(t *testing.T) {
	before := fixture()
	o := before
	var err error
	for _, v := range []any{
		hook(func(w *catalog.Webhook) { w.Env, w.Stored = "", true }),
		catalog.TenantWebhook{Tenant: "acme", Webhook: hook(func(w *catalog.Webhook) { w.URL += "/acme" })},
	} {
		if o, err = o.With(v); err != nil {
			t.Fatal(err)
		}
	}
	log := history(t, before, o)
	state := folded(log)
	if diff := cmp.Diff(o.Canonical(), state.Objects()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	operators, theirs := catalog.Identify(o.Webhooks[0]), catalog.Identify(catalog.TenantWebhook{Tenant: "acme", Webhook: o.Tenants[0].Webhooks[0]})
	if operators.Stream() != "webhook/ops" || theirs.Stream() != "tenant/acme/webhook/ops" {
		t.Errorf("streams %s and %s", operators.Stream(), theirs.Stream())
	}
	for _, id := range []catalog.ObjectID{operators, theirs} {
		parsed, err := catalog.ParseObjectID(id.String())
		if err != nil || parsed != id || !slices.Contains(catalog.Kinds(), id.Kind) {
			t.Errorf("%s is read as %v, %v", id, parsed, err)
		}
		have, ok := state.Objects().Find(id)
		if !ok || catalog.Identify(have) != id || state.RevisionOf(id) != 1 {
			t.Errorf("%s: %v at revision %d", id, have, state.RevisionOf(id))
		}
	}
	secret := catalog.WebhookSecret("", "ops")
	if secret.Stream() != "webhook/ops" || !o.Stores(secret) || o.Stores(catalog.WebhookSecret("acme", "ops")) {
		t.Errorf("secrets: %+v", secret)
	}
	state.Fold(catalog.Recorded{Stream: secret.Stream(), Version: 2, Event: catalog.CredentialStored{StoredCredential: catalog.StoredCredential{CredentialOf: secret}}})
	if _, held := state.Credential(secret); !held {
		t.Error("the secret is not held")
	}
	without, err := state.Objects().Without(operators)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range catalog.Diff(state, without) {
		for i, e := range change.Events {
			state.Fold(catalog.Recorded{Stream: change.Stream, Version: change.Revision + int64(i) + 1, Event: e})
		}
	}
	if _, held := state.Credential(secret); held || len(state.Objects().Webhooks) != 0 || len(state.Objects().Tenants[0].Webhooks) != 1 {
		t.Errorf("after the removal: held %v, %+v", held, state.Objects().Webhooks)
	}
	reverted, err := catalog.Revert(state.Objects(), operators, catalog.Versions(operators, slices.DeleteFunc(log, func(r catalog.Recorded) bool { return r.Stream != operators.Stream() })), nil, 1)
	if err != nil || len(reverted.Webhooks) != 1 {
		t.Errorf("reverted: %+v, %v", reverted.Webhooks, err)
	}
}

// Rules: U4.
func TestWhatAWebhookWants_U4(t *testing.T) {
	all, some := hook(func(*catalog.Webhook) {}), hook(func(w *catalog.Webhook) { w.Events = []catalog.WebhookEvent{catalog.HookBillClosed} })
	off := hook(func(w *catalog.Webhook) { w.Disabled = true })
	for _, e := range catalog.WebhookEvents() {
		if !all.Wants(e) || some.Wants(e) != (e == catalog.HookBillClosed) || off.Wants(e) {
			t.Errorf("%s: %v %v %v", e, all.Wants(e), some.Wants(e), off.Wants(e))
		}
	}
}

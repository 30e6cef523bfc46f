package catalog

import (
	"fmt"
	"slices"
)

// Webhook is an address that is told of events (U4). One at the top of the file is the
// operator's and may hear of everything; an organization's hears only of itself.
type Webhook struct {
	ID string `json:"id"`
	// URL is posted to: https, or http to a host that SLUICE_INTERNAL_HOSTS opens.
	URL string `json:"url"`
	// Events are the kinds of news it wants; none means all that its owner may hear.
	Events []WebhookEvent `json:"events,omitempty"`
	// Env is the environment variable with the secret that signs what is sent.
	Env string `json:"env,omitempty"`
	// Stored says that the secret is kept sealed in the database; sluice credentials set
	// --webhook puts it there.
	Stored bool `json:"stored,omitempty"`
	// Disabled hears of nothing; what it was to be told before waits.
	Disabled bool `json:"disabled,omitempty"`
}

// WebhookEvent is a kind of news that a webhook may ask for.
type WebhookEvent string

// The events of U4.
const (
	HookCircuitOpened       WebhookEvent = "circuit_opened"
	HookCircuitClosed       WebhookEvent = "circuit_closed"
	HookBudgetThreshold     WebhookEvent = "budget_threshold"
	HookBudgetExhausted     WebhookEvent = "budget_exhausted"
	HookAliasDegraded       WebhookEvent = "alias_degraded"
	HookBillClosed          WebhookEvent = "bill_closed"
	HookReconciliationDrift WebhookEvent = "reconciliation_drift"
	HookProjectionStalled   WebhookEvent = "projection_stalled"
	HookProjectionRecovered WebhookEvent = "projection_recovered"
)

// WebhookEvents are all kinds of news, in the order of the documentation.
func WebhookEvents() []WebhookEvent {
	return []WebhookEvent{
		HookCircuitOpened, HookCircuitClosed, HookBudgetThreshold, HookBudgetExhausted, HookAliasDegraded,
		HookBillClosed, HookReconciliationDrift, HookProjectionStalled, HookProjectionRecovered,
	}
}

// ForTenants reports whether an organization may hear of it: whether it is about one.
func (e WebhookEvent) ForTenants() bool {
	return slices.Contains([]WebhookEvent{HookBudgetThreshold, HookBudgetExhausted, HookAliasDegraded, HookBillClosed}, e)
}

// Wants reports whether the webhook asked for an event. Whether its owner may hear of
// it is another question.
func (w Webhook) Wants(e WebhookEvent) bool {
	return !w.Disabled && (len(w.Events) == 0 || slices.Contains(w.Events, e))
}

// TenantWebhook is an organization's webhook with its owner.
type TenantWebhook struct {
	Tenant string `json:"-"`
	Webhook
}

// WebhookDefined creates or replaces a webhook. Stream webhook/<id>, or
// tenant/<tenant>/webhook/<id> for an organization's.
type WebhookDefined struct {
	// Tenant is empty for the operator's own.
	Tenant  string  `json:"tenant,omitempty"`
	Webhook Webhook `json:"webhook"`
}

// WebhookRemoved takes a webhook away, and with it its stored secret and what it was
// still to be told.
type WebhookRemoved struct {
	Tenant  string `json:"tenant,omitempty"`
	Webhook string `json:"webhook"`
}

// WebhookSecret names the stored secret of a webhook; tenant is empty for the
// operator's.
func WebhookSecret(tenant, id string) CredentialOf {
	return CredentialOf{Tenant: tenant, Webhook: id}
}

// Webhook is an organization's webhook by its id, or, without an organization, the
// operator's.
func (s *Snapshot) Webhook(tenant, id string) (Webhook, bool) { return s.objects.webhook(tenant, id) }

func (o Objects) webhook(tenant, id string) (Webhook, bool) {
	list := o.Webhooks
	if tenant != "" {
		t, _ := find(o.Tenants, ObjectID{Kind: KindTenant, Name: tenant})
		list = t.Webhooks
	}
	if i := slices.IndexFunc(list, func(w Webhook) bool { return w.ID == id }); i >= 0 {
		return list[i], true
	}
	return Webhook{}, false
}

// maxWebhooks bounds those of one owner: every event is written down once for each.
const maxWebhooks = 16

func (v *validation) webhooks(path, tenant string, list []Webhook) {
	if len(list) > maxWebhooks {
		v.fail(path, "more than %d webhooks", maxWebhooks)
		return
	}
	seen := map[string]bool{}
	for i, w := range list {
		v.webhook(fmt.Sprintf("%s[%d]", path, i), tenant, w, seen)
	}
}

func (v *validation) webhook(path, tenant string, w Webhook, seen map[string]bool) {
	v.id(path+".id", w.ID)
	v.once(path+".id", "webhook", w.ID, seen)
	v.webhookURL(path+".url", w.URL)
	switch {
	case w.Stored && w.Env != "":
		v.fail(path, "is stored and names an environment variable: one or the other")
	case !w.Stored && w.Env == "":
		v.fail(path, "says nowhere where the secret is: env, or stored: true")
	}
	v.env(path+".env", w.Env)
	events := map[string]bool{}
	for i, e := range w.Events {
		p := fmt.Sprintf("%s.events[%d]", path, i)
		if e == "" {
			v.fail(p, "is empty")
		}
		oneOf(v, p, e, WebhookEvents()...)
		v.once(p, "event", string(e), events)
		if tenant != "" && slices.Contains(WebhookEvents(), e) && !e.ForTenants() {
			v.fail(p, "%s is for the operator's webhooks: it is about no organization", e)
		}
	}
}

// webhookURL never repeats the address in a reason: it may hold a credential. Whether
// the host may be called is judged where it is called: only there it is known which
// address a name has (Z1).
func (v *validation) webhookURL(path, address string) {
	if address == "" {
		v.fail(path, "is missing")
		return
	}
	if u := v.url(path, address, "; what is sent is signed instead"); u != nil && u.Fragment != "" {
		v.fail(path, "holds a fragment, which is never sent")
	}
}

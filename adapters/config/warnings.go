package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// Warning is something that is accepted and will not do what one may expect.
type Warning struct {
	// Line is the first place, and Places is how many there are.
	Line   int
	Places int
	Text   string
}

func (w Warning) String() string {
	if w.Places > 1 {
		return fmt.Sprintf("line %d and %d more: %s", w.Line, w.Places-1, w.Text)
	}
	return fmt.Sprintf("line %d: %s", w.Line, w.Text)
}

const stored = " is kept in the catalog, but this release does not act on it"

// warnings finds what is stored and not acted on, and deployments that no request
// will reach: those that lack a price, and those whose base URL workers refuse. Nothing of a file is ever dropped without a word; a part leaves this
// list when the behaviour behind it arrives.
func (l Loader) warnings(o catalog.Objects, line func(path string) int) []Warning {
	w := collector{line: line, byText: map[string]*Warning{}}
	for i, p := range o.Providers {
		w.when(l.Refuses != nil && l.Refuses(p.BaseURL), fmt.Sprintf("providers[%d].base_url", i), RefusedBaseURL(p))
	}
	for i, d := range o.Deployments {
		at := fmt.Sprintf("deployments[%d]", i)
		w.when(d.Dispatch != nil, at+".dispatch", "deployments.dispatch"+stored)
		w.when(!d.Prices.Known(), at, "the deployment has no input or no output price: requests skip it as price_unknown")
		w.when(d.Prices.CachePriceMissing() && slices.Contains(d.Capabilities, catalog.PromptCaching), at+".prices",
			"prompt_caching without a cache_read price: cached input is priced as full input (cache_price_missing)")
	}
	offered := slices.ContainsFunc(o.Models, func(m catalog.Model) bool { return m.Surcharge != nil })
	w.refusedWebhooks("webhooks", o.Webhooks, l.RefusesWebhook)
	for i, t := range o.Tenants {
		at := fmt.Sprintf("tenants[%d]", i)
		w.when(t.Tier != "", at+".tier", "tenants.tier"+stored)
		w.when(t.SurchargeFallback && !offered, at+".surcharge_fallback",
			"tenants.surcharge_fallback has no effect: no model offers a surcharge")
		w.refusedWebhooks(at+".webhooks", t.Webhooks, l.RefusesWebhook)
	}
	return w.sorted()
}

// RefusedBaseURL says what becomes of a provider whose base URL leads into the own
// network, and what opens it.
func RefusedBaseURL(p catalog.Provider) string {
	return fmt.Sprintf("the base URL of provider %s leads into the own network: its routes are skipped as base_url_refused until workers are started with %s=%s",
		p.ID, network.HostsEnv, network.HostOf(p.BaseURL))
}

// RefusedWebhook says what becomes of a webhook that workers do not post to.
func RefusedWebhook(w catalog.Webhook) string {
	return fmt.Sprintf("the webhook %s leads into the own network or is not https: nothing is sent to it until workers are started with %s=%s",
		w.ID, network.HostsEnv, network.HostOf(w.URL))
}

func (c *collector) refusedWebhooks(path string, list []catalog.Webhook, refuses func(url string) bool) {
	for i, w := range list {
		c.when(refuses != nil && refuses(w.URL), fmt.Sprintf("%s[%d].url", path, i), RefusedWebhook(w))
	}
}

type collector struct {
	line   func(string) int
	byText map[string]*Warning
}

// when notes a warning once, however many objects of the file it is about.
func (c *collector) when(applies bool, path, text string) {
	if !applies {
		return
	}
	line := c.line(path)
	w := c.byText[text]
	if w == nil {
		w = &Warning{Line: line, Text: text}
		c.byText[text] = w
	}
	w.Places++
	w.Line = min(w.Line, line)
}

func (c *collector) sorted() []Warning {
	list := make([]Warning, 0, len(c.byText))
	for _, w := range c.byText {
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return list
}

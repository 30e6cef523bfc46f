package adminapi

import (
	"context"
	"net/http"
	"time"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
)

// correctionBody is what a price correction shall say; its times are as RFC 3339 writes
// them.
type correctionBody struct {
	From   string       `json:"from"`
	To     string       `json:"to"`
	Prices money.Prices `json:"prices"`
	Reason string       `json:"reason"`
	// Source may also stand in prices.
	Source string `json:"source"`
}

// correctPrice is POST deployments/{id}/price-corrections (M15). It needs no revision:
// what is said about the past is right or wrong whatever the deployment is now.
func (a *API) correctPrice(ctx context.Context, c *call) *edge.Reply {
	correction, err := correctionOf(c)
	if err != nil {
		return a.refuse(err)
	}
	position, err := config.CorrectPrice(ctx, a.Log, correction, c.by, a.Now())
	if err != nil {
		return a.refuse(err)
	}
	return document(http.StatusCreated, config.PriceCorrection{
		Position: position, At: a.Now().UTC(), Actor: c.by.Actor, PriceCorrected: correction.Canonical(),
	})
}

func correctionOf(c *call) (catalog.PriceCorrected, error) {
	correction := catalog.PriceCorrected{Deployment: c.Params["id"]}
	doc, err := body(c, false)
	if err != nil {
		return correction, err
	}
	var sent correctionBody
	if err := doc.Decode(&sent); err != nil {
		return correction, err
	}
	for field, at := range map[string]struct {
		text string
		to   *time.Time
	}{"from": {sent.From, &correction.From}, "to": {sent.To, &correction.To}} {
		if *at.to, err = time.Parse(time.RFC3339, at.text); err != nil {
			return correction, badField(field, "must be a time such as 2026-11-01T00:00:00Z")
		}
	}
	correction.Prices, correction.Reason = sent.Prices, sent.Reason
	if sent.Source != "" {
		correction.Prices.Source = sent.Source
	}
	return correction, nil
}

// listCorrections is GET deployments/{id}/price-corrections: what was corrected, by whom
// and why, oldest first.
func (a *API) listCorrections(ctx context.Context, c *call) *edge.Reply {
	from, limit, refused := paging(c)
	if refused != nil {
		return refused.reply()
	}
	all, err := config.PriceCorrections(ctx, a.Log, c.Params["id"])
	if err != nil {
		return a.refuse(err)
	}
	return document(http.StatusOK, pageOf(all, from, limit))
}

package catalog

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/domain/equivalence"
	"github.com/sluice-gateway/sluice/domain/money"
)

// The events of the configuration streams (C1). A Defined event carries the whole
// object and both creates and replaces it: what changed is the difference to the
// event before, and a reader never has to merge half objects. The parts that
// change on their own (prices, chain, policy, certification) have their own
// events, so that history says what was done.

// ProviderDefined creates or replaces a provider. Stream provider/<id>.
type ProviderDefined struct {
	Provider Provider `json:"provider"`
}

// ProviderRemoved takes a provider away.
type ProviderRemoved struct {
	Provider string `json:"provider"`
}

// DeploymentDefined creates or replaces a deployment, all but its prices. Stream
// deployment/<id>.
type DeploymentDefined struct {
	Deployment Deployment `json:"deployment"`
}

// DeploymentRemoved takes a deployment and its prices away.
type DeploymentRemoved struct {
	Deployment string `json:"deployment"`
}

// PriceSet replaces all prices of a deployment from now on. What was reserved
// before settles at the prices of its reservation (M4). Stream deployment/<id>.
type PriceSet struct {
	Deployment string       `json:"deployment"`
	Prices     money.Prices `json:"prices"`
}

// ModelDefined creates a model, or changes its exact id or its surcharge. Stream
// model/<slug>.
type ModelDefined struct {
	Model      string `json:"model"`
	ExactModel string `json:"exact_model"`
	// Surcharge is in percent, absent where none is offered (M12).
	Surcharge *decimal.Decimal `json:"surcharge,omitempty"`
}

// ModelRemoved takes a model away with its policy and certification. Its chain
// has its own stream and is emptied by a ChainReplaced.
type ModelRemoved struct {
	Model string `json:"model"`
}

// PolicyChanged replaces a model's policy. Stream model/<slug>.
type PolicyChanged struct {
	Model  string `json:"model"`
	Policy Policy `json:"policy"`
}

// EquivalenceCertified is an operator's word that the model's pool is one model
// (N15). Stream model/<slug>.
type EquivalenceCertified struct {
	Model       string      `json:"model"`
	Equivalence Equivalence `json:"equivalence"`
}

// EquivalenceWithdrawn takes that word back.
type EquivalenceWithdrawn struct {
	Model string `json:"model"`
}

// EquivalenceChecked is what a check of the model's pool found (N24). It changes
// nothing by itself: a certification cites it by its hash. Stream model/<slug>.
type EquivalenceChecked struct {
	Model string `json:"model"`
	// Hash is the evidence's own, as a certification cites it.
	Hash     string               `json:"hash"`
	Evidence equivalence.Evidence `json:"evidence"`
}

// ChainReplaced replaces a model's whole chain in one event, so that no reader
// ever sees a part (C2). Stream chain/<owner>/<model>.
type ChainReplaced struct {
	// Owner is OperatorChain; an organization's own override carries its id.
	Owner string `json:"owner"`
	Model string `json:"model"`
	Chain []Rung `json:"chain"`
}

// OperatorChain is the owner of the chain that everyone has who has no override.
const OperatorChain = "operator"

// ClassDefined creates or replaces a traffic class. Stream class/<name>.
type ClassDefined struct {
	Class Class `json:"class"`
}

// ClassRemoved takes a class away.
type ClassRemoved struct {
	Class string `json:"class"`
}

// TenantDefined creates or replaces an organization, all but its aliases, rules
// and budgets. Stream tenant/<id>.
type TenantDefined struct {
	Tenant Tenant `json:"tenant"`
}

// TenantRemoved takes an organization away. Its keys open nothing from then on.
type TenantRemoved struct {
	Tenant string `json:"tenant"`
}

// AliasDegraded says that nothing fits an alias any more since this change of the
// catalog (N2). It changes nothing by itself.
type AliasDegraded struct {
	Tenant string `json:"tenant"`
	Name   string `json:"name"`
}

// AliasDefined creates or replaces an alias. Stream
// tenant/<tenant>/alias/<name>.
type AliasDefined struct {
	Tenant string `json:"tenant"`
	Alias  Alias  `json:"alias"`
}

// AliasRemoved takes an alias away.
type AliasRemoved struct {
	Tenant string `json:"tenant"`
	Alias  string `json:"alias"`
}

// RoutingRuleDefined creates or replaces a rule. Stream
// tenant/<tenant>/routing_rule/<match>.
type RoutingRuleDefined struct {
	Tenant string      `json:"tenant"`
	Rule   RoutingRule `json:"rule"`
}

// RoutingRuleRemoved takes a rule away.
type RoutingRuleRemoved struct {
	Tenant string `json:"tenant"`
	Match  string `json:"match"`
}

// BudgetSet sets one limit of an organization. Stream
// budget/<tenant>/<scope>/<unit>/<period>, the scope with whose it is: Budget.ID.
type BudgetSet struct {
	Tenant string `json:"tenant"`
	Budget Budget `json:"budget"`
}

// BudgetRemoved lifts one limit; the words are its identity.
type BudgetRemoved struct {
	Tenant string `json:"tenant"`
	Scope  string `json:"scope"`
	Of     string `json:"of,omitempty"`
	Unit   Unit   `json:"unit"`
	Per    Period `json:"per"`
}

// KeyCreated makes a caller's key known by its hash. Stream key/<id>.
type KeyCreated struct {
	Key Key `json:"key"`
}

// KeyRevoked ends a key for good.
type KeyRevoked struct {
	Key       string    `json:"key"`
	RevokedAt time.Time `json:"revoked_at"`
}

// ConfigurationChanged stands beside every change of the configuration but those of
// keys, in the same batch. A change is judged over the whole catalog, so two that
// touch different objects must not be decided at once: one could remove what the
// other begins to refer to. They all write this one stream, and the later of two
// is decided again. Stream settings/configuration.
type ConfigurationChanged struct {
	// Objects is how many objects the change wrote.
	Objects int `json:"objects"`
}

// Unknown stands for a stored event whose type or version this release does not
// know. Configuration passes over it, visibly (C15).
type Unknown struct {
	Type    string
	Version int
}

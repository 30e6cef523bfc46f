package event

import "github.com/sluice-gateway/sluice/domain/catalog"

// catalogEvents are the events of the configuration streams.
var catalogEvents = []definition{
	define[catalog.ProviderDefined]("provider_defined"),
	define[catalog.ProviderRemoved]("provider_removed"),
	define[catalog.DeploymentDefined]("deployment_defined"),
	define[catalog.DeploymentRemoved]("deployment_removed"),
	define[catalog.PriceSet]("price_set"),
	define[catalog.PriceCorrected]("price_corrected"),
	define[catalog.ModelDefined]("model_defined"),
	define[catalog.ModelRemoved]("model_removed"),
	define[catalog.PolicyChanged]("policy_changed"),
	define[catalog.EquivalenceCertified]("equivalence_certified"),
	define[catalog.EquivalenceWithdrawn]("equivalence_withdrawn"),
	define[catalog.ChainReplaced]("chain_replaced"),
	define[catalog.ClassDefined]("class_defined"),
	define[catalog.ClassRemoved]("class_removed"),
	define[catalog.TierDefined]("tier_defined"),
	define[catalog.TierRemoved]("tier_removed"),
	define[catalog.TenantDefined]("tenant_defined"),
	define[catalog.TenantRemoved]("tenant_removed"),
	define[catalog.AliasDefined]("alias_defined"),
	define[catalog.AliasDegraded]("alias_degraded"),
	define[catalog.AliasRemoved]("alias_removed"),
	define[catalog.RoutingRuleDefined]("routing_rule_defined"),
	define[catalog.RoutingRuleRemoved]("routing_rule_removed"),
	define[catalog.BudgetSet]("budget_set"),
	define[catalog.BudgetRemoved]("budget_removed"),
	define[catalog.KeyCreated]("key_created"),
	define[catalog.KeyRevoked]("key_revoked"),
	define[catalog.ConnectionDefined]("connection_defined"),
	define[catalog.ConnectionRemoved]("connection_removed"),
	define[catalog.CredentialStored]("credential_stored"),
	define[catalog.CredentialDeleted]("credential_deleted"),
	define[catalog.ConfigurationChanged]("configuration_changed"),
}

package catalog

// One stream per object (E2). The names are part of the log and never change.

func providerStream(id string) string        { return "provider/" + id }
func deploymentStream(id string) string      { return "deployment/" + id }
func modelStream(slug string) string         { return "model/" + slug }
func chainStream(owner, model string) string { return "chain/" + owner + "/" + model }
func connectionStream(tenant, id string) string {
	return "connection/" + tenant + "/" + id
}
func classStream(name string) string { return "class/" + name }
func tierStream(name string) string  { return "tier/" + name }

// The id of a tenant holds no slash, so that no tenant can have the stream of
// another one's alias.
func tenantStream(id string) string { return "tenant/" + id }

// AliasStream is the stream of one alias of a tenant.
func AliasStream(tenant, name string) string { return "tenant/" + tenant + "/alias/" + name }

func ruleStream(tenant, match string) string    { return "tenant/" + tenant + "/routing_rule/" + match }
func budgetStream(tenant, budget string) string { return "budget/" + tenant + "/" + budget }

// webhookStream is the operator's without a tenant.
func webhookStream(tenant, id string) string {
	if tenant == "" {
		return "webhook/" + id
	}
	return "tenant/" + tenant + "/webhook/" + id
}

// KeyStream is the stream of one caller's key.
func KeyStream(id string) string { return "key/" + id }

// ConfigurationStream is written by every change: see ConfigurationChanged.
const ConfigurationStream = "settings/configuration"

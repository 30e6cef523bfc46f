package catalog

import "slices"

// Connection is an organization's own credential for a provider: its chains may name
// it, and what is called through it is the organization's own affair with the
// provider (W6, M11). Nobody else's chain can name it.
type Connection struct {
	ID string `json:"id"`
	// Provider gives protocol and address; its own keys are never used in the place of
	// the connection's.
	Provider string `json:"provider"`
	Env      string `json:"env,omitempty"`
	// Stored says that the secret is kept sealed in the database; sluice credentials set
	// --tenant puts it there.
	Stored bool `json:"stored,omitempty"`
}

// through is the provider with the connection's credential as its only key. The
// key's id says whose it is, so that a circuit or a parked key of one organization
// never touches another's (H6).
func (c Connection) through(p Provider, tenant string) *Provider {
	p.Keys = []ProviderKey{{ID: tenant + "/" + c.ID, Env: c.Env, Stored: c.Stored}}
	return &p
}

// deploymentOn is the deployment by which a connection reaches a model: the first of
// the operator's chain that is on the connection's provider. It knows the upstream
// model, the windows and the prices; a connection is only a credential.
func deploymentOn(provider string, m *Model, deployment func(id string) *Deployment) *Deployment {
	if m == nil {
		return nil
	}
	for _, r := range m.Chain {
		if d := deployment(r.Deployment); d != nil && d.Provider == provider {
			return d
		}
	}
	return nil
}

// Connection is an organization's connection by its id.
func (t Tenant) Connection(id string) (Connection, bool) {
	i := slices.IndexFunc(t.Connections, func(c Connection) bool { return c.ID == id })
	if i < 0 {
		return Connection{}, false
	}
	return t.Connections[i], true
}

// ConnectionDefined creates or replaces a connection. Stream
// connection/<tenant>/<id>.
type ConnectionDefined struct {
	Tenant     string     `json:"tenant"`
	Connection Connection `json:"connection"`
}

// ConnectionRemoved takes a connection away, and with it its stored credential.
type ConnectionRemoved struct {
	Tenant     string `json:"tenant"`
	Connection string `json:"connection"`
}

func (v *validation) connection(path string, c Connection, seen map[string]bool) {
	v.id(path+".id", c.ID)
	v.once(path+".id", "connection", c.ID, seen)
	v.provided(path+".provider", c.Provider)
	switch {
	case c.Stored && c.Env != "":
		v.fail(path, "is stored and names an environment variable: one or the other")
	case !c.Stored && c.Env == "":
		v.fail(path, "says nowhere where the secret is: env, or stored: true")
	}
	v.env(path+".env", c.Env)
}

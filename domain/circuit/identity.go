package circuit

import (
	"crypto/sha256"
	"encoding/hex"
)

// Identity is the catalog identity of a route by one key: what makes it the same
// route in two snapshots. A price, a limit or a policy may change under a circuit;
// another address, region or upstream model is another route, and begins closed:
// whoever corrects a wrong address must not wait for the old one's window (H1).
type Identity struct {
	Deployment    string
	UpstreamModel string
	Provider      string
	Protocol      string
	BaseURL       string
	Region        string
	Credential    string
	// Connection is set on the routes of an organization's own credential: a route is a
	// deployment over a connection, and one connection's failures are not another's.
	Connection string
}

// ByKeyName names the circuit of the route by this key.
func (id Identity) ByKeyName(model string, masked bool) Name {
	n := id.RouteName(model, masked)
	n.Key = key(n.Key, id.Credential)
	n.Credential = id.Credential
	return n
}

// RouteName names the circuit of the route by any key of its pool.
func (id Identity) RouteName(model string, masked bool) Name {
	parts := []string{id.Deployment, id.UpstreamModel, id.Provider, id.Protocol, id.BaseURL, id.Region}
	if id.Connection != "" {
		parts = append(parts, id.Connection)
	}
	return Name{
		Kind: Route, Provider: id.Provider, Model: model, Deployment: id.Deployment, Masked: masked,
		Credential: id.Connection,
		Key:        key(parts...),
	}
}

// EndpointName names the circuit of the address, which providers may share (H4).
// Where no address is configured it is the vendor's own for the region.
func (id Identity) EndpointName(masked bool) Name {
	address := id.BaseURL
	if address == "" {
		address = id.Region
	}
	return Name{Kind: Endpoint, Provider: id.Provider, Masked: masked, Key: key(id.Protocol, address)}
}

// CredentialName names the circuit of the key, whatever it is used for (H5).
func (id Identity) CredentialName(masked bool) Name {
	return Name{
		Kind: Credential, Provider: id.Provider, Credential: id.Credential, Masked: masked,
		Key: key(id.Provider, id.Credential),
	}
}

// keyBytes of the hash: 96 bits tell a catalog's circuits apart for good.
const keyBytes = 12

// key is a name made of parts. It is a hash because an address may be long, hold a
// secret in its path, or anything else that does not belong in a stream's name.
func key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:keyBytes])
}

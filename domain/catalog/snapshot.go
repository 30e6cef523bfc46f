package catalog

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// Snapshot is the immutable catalog that requests are served from. Every read is
// a map lookup without a lock; nothing that it hands out may be changed. A request
// keeps the snapshot it was admitted with until it ends (N14, C12).
type Snapshot struct {
	// ID is the hash of the content: see Document.
	ID string
	// Position is the log position that the content was true at.
	Position int64

	objects     Objects
	providers   map[string]*Provider
	deployments map[string]*Deployment
	models      map[string]*Model
	policies    map[string]Policy
	tenants     map[string]*Tenant
	classes     map[string][]string
	tiers       map[string]float64
	names       map[string]*tenantNames
	// defaults are what the default aliases stand for.
	defaults    map[string]*Model
	keys        map[string]*Key
	infos       []ModelInfo
	credentials map[CredentialOf]StoredCredential
}

// ModelInfo is what a list of models says about one.
type ModelInfo struct {
	Slug       string
	ExactModel string
	// Since is when the model was first defined.
	Since time.Time
}

// Snapshot builds the immutable catalog of this state. It never fails: what does
// not hold together (a rung whose deployment is gone) is skipped when a name is
// resolved, for that request and with a reason, instead of keeping every other
// change from every worker.
func (s *State) Snapshot() *Snapshot {
	snap := newSnapshot(s.Objects())
	snap.ID = DocumentID(snap.Document())
	snap.Position = s.position
	for i := range snap.infos {
		snap.infos[i].Since = s.modelsSince[snap.infos[i].Slug]
	}
	snap.credentials = maps.Clone(s.credentials)
	snap.keys = make(map[string]*Key, len(s.keys))
	for _, k := range s.keys {
		// A key without its organization opens nothing: it is not in the snapshot.
		if _, ok := snap.tenants[k.Tenant]; ok {
			snap.keys[k.Hash] = &k
		}
	}
	return snap
}

// NewSnapshot is a snapshot of objects alone, without keys or a place in the log:
// what a simulation or another policy is tried on.
func NewSnapshot(o Objects) *Snapshot {
	snap := newSnapshot(o)
	snap.ID = DocumentID(snap.Document())
	return snap
}

func newSnapshot(o Objects) *Snapshot {
	snap := &Snapshot{
		objects:     o,
		providers:   make(map[string]*Provider, len(o.Providers)),
		deployments: make(map[string]*Deployment, len(o.Deployments)),
		models:      make(map[string]*Model, len(o.Models)),
		policies:    make(map[string]Policy, len(o.Models)),
		tenants:     make(map[string]*Tenant, len(o.Tenants)),
		classes:     make(map[string][]string, len(o.Classes)),
		tiers:       make(map[string]float64, len(o.Tiers)),
		names:       make(map[string]*tenantNames, len(o.Tenants)),
		infos:       make([]ModelInfo, 0, len(o.Models)),
	}
	for i := range o.Providers {
		snap.providers[o.Providers[i].ID] = &o.Providers[i]
	}
	for i := range o.Deployments {
		snap.deployments[o.Deployments[i].ID] = &o.Deployments[i]
	}
	for i := range o.Models {
		m := &o.Models[i]
		snap.models[m.Slug], snap.policies[m.Slug] = m, m.Policy.WithDefaults()
		snap.infos = append(snap.infos, ModelInfo{Slug: m.Slug, ExactModel: m.ExactModel})
	}
	for i := range o.Tenants {
		snap.tenants[o.Tenants[i].ID] = &o.Tenants[i]
	}
	for _, c := range o.Classes {
		snap.classes[c.Name] = c.Chain
	}
	for _, t := range o.Tiers {
		snap.tiers[t.Name] = t.Weight
	}
	snap.nameTenants()
	return snap
}

// nameTenants works out what every tenant's names stand for. The default aliases
// are the same for all and resolved once.
func (s *Snapshot) nameTenants() {
	aliases := newAliases(s)
	s.defaults = map[string]*Model{}
	for _, a := range DefaultAliases() {
		s.defaults[a.Name] = aliases.fit(a)
	}
	for i := range s.objects.Tenants {
		t := &s.objects.Tenants[i]
		names := &tenantNames{aliases: s.defaults, surcharge: t.SurchargeFallback}
		if len(t.Aliases) > 0 {
			names.aliases = maps.Clone(s.defaults)
			for _, a := range t.Aliases {
				names.aliases[a.Name] = aliases.fit(a)
			}
		}
		if len(t.RoutingRules) > 0 {
			names.rules = make(map[string][]string, len(t.RoutingRules))
			for _, r := range t.RoutingRules {
				names.rules[r.Match] = r.Chain
			}
		}
		for _, c := range t.Connections {
			// Of a provider that is gone, there is nothing to call.
			if p := s.providers[c.Provider]; p != nil {
				if names.connections == nil {
					names.connections = make(map[string]*Provider, len(t.Connections))
				}
				names.connections[c.ID] = c.through(*p, t.ID)
			}
		}
		for _, c := range t.Chains {
			// Of a model that is gone, the chain is nobody's.
			if m := s.models[c.Model]; m != nil {
				if names.own == nil {
					names.own = make(map[string]*Model, len(t.Chains))
				}
				own := *m
				own.Chain = c.Chain
				names.own[m.Slug] = &own
			}
		}
		s.names[t.ID] = names
	}
}

// KeyByHash finds a caller's key by HashKey of what the caller sent (A1). Whether
// it may still be used is Key.Usable.
func (s *Snapshot) KeyByHash(hash string) (*Key, bool) {
	k, ok := s.keys[hash]
	// The lookup compares hashes, whose bytes a caller cannot steer, so its timing
	// says nothing about a stored key; the last word is a comparison in constant
	// time all the same (Z3).
	if !ok || subtle.ConstantTimeCompare([]byte(k.Hash), []byte(hash)) != 1 {
		return nil, false
	}
	return k, true
}

// Tenant is an organization by id.
func (s *Snapshot) Tenant(id string) (*Tenant, bool) {
	t, ok := s.tenants[id]
	return t, ok
}

// Provider is a provider by id.
func (s *Snapshot) Provider(id string) (*Provider, bool) {
	p, ok := s.providers[id]
	return p, ok
}

// Deployment is a deployment by id.
func (s *Snapshot) Deployment(id string) (*Deployment, bool) {
	d, ok := s.deployments[id]
	return d, ok
}

// Models lists what the organization may ask for, sorted by name; nothing for an
// unknown organization. The slice is shared and read-only.
func (s *Snapshot) Models(tenant string) []ModelInfo {
	if _, ok := s.tenants[tenant]; !ok {
		return nil
	}
	return s.infos
}

// Objects is the configurable content, in canonical form; read-only.
func (s *Snapshot) Objects() Objects { return s.objects }

// DocumentFormat is the version of the canonical encoding behind ID. It changes
// only when the same content would be written differently; a new optional field
// is not that, because it is left out where it is not set.
const DocumentFormat = 1

// snapshotDocument is a snapshot as it is hashed and stored.
type snapshotDocument struct {
	Format int `json:"format"`
	Objects
}

// Document is the canonical encoding whose SHA-256 is the ID: format version and
// content, sorted, in JSON. The ID depends on what is configured and on nothing
// else: not on the order of events, not on revisions, and not on callers' keys. A
// key says who may ask, never what a name resolves to or costs; with 50,000 of
// them in the hash, every new key would also give the unchanged routes a new id.
func (s *Snapshot) Document() []byte { return document(s.objects) }

func document(o Objects) []byte {
	doc, err := json.Marshal(snapshotDocument{Format: DocumentFormat, Objects: o})
	if err != nil {
		panic(fmt.Sprintf("catalog: objects cannot be encoded: %v", err)) // plain structs: a programming error
	}
	return doc
}

// DocumentID is the id of a document: sha256 and its hex digest.
func DocumentID(doc []byte) string {
	sum := sha256.Sum256(doc)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// DocumentError is a stored snapshot that is not what its id says, or that is
// written in a format this release cannot read.
type DocumentError struct{ Reason string }

func (e *DocumentError) Error() string { return "stored snapshot: " + e.Reason }

// ReadDocument checks a stored snapshot against the id it was published with and
// reads it. The check is over the stored bytes, never over a new encoding of what
// was read: a release that would write the same content differently must not
// reject what an older one published (C16).
func ReadDocument(id string, doc []byte) (Objects, error) {
	if subtle.ConstantTimeCompare([]byte(DocumentID(doc)), []byte(id)) != 1 {
		return Objects{}, &DocumentError{Reason: "content does not have the id " + id}
	}
	var read snapshotDocument
	if err := json.Unmarshal(doc, &read); err != nil {
		return Objects{}, &DocumentError{Reason: "not a snapshot"}
	}
	if read.Format < 1 || read.Format > DocumentFormat {
		return Objects{}, &DocumentError{Reason: fmt.Sprintf("format %d is not known to this release", read.Format)}
	}
	return read.Objects, nil
}

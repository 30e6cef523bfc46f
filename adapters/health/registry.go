package health

import (
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// maxCircuits bounds memory: at about 600 bytes a circuit with its lane this is
// 20 MB. A route past it is called without a memory of how it fares.
const maxCircuits = 32_768

// shardCount spreads the locks of the map that every claim reads. A power of two.
const shardCount = 64

// Secrets says which credentials this worker holds.
type Secrets interface {
	Holds(p *catalog.Provider, keyID string) bool
}

// Config is what a Registry is made of.
type Config struct {
	Secrets Secrets
	// SecretID tells which secret a key stands for now; another in its place is another
	// account (H12). nil tells none apart.
	SecretID func(p *catalog.Provider, keyID string) string
	// Log takes the transitions; nil keeps none. See Run.
	Log Log
	// Worker is this process in the log's envelope (E12): circuits are a worker's own.
	Worker string
	// Logger may be nil.
	Logger *slog.Logger
}

// Registry is a worker's circuits. It implements walk.World and is safe for
// concurrent use.
type Registry struct {
	config Config
	seed   maphash.Seed
	shards [shardCount]shard
	// turns are the round-robin positions by provider (W17).
	turns sync.Map

	// mu guards the making and dropping of circuits, never their use.
	mu       sync.Mutex
	circuits map[address]*entry
	// evicted is when circuits were last evicted.
	evicted time.Time

	// exhausted is until when any account at all is known to be out of funds, in Unix
	// nanoseconds: nearly always none is, and nothing has to be looked up.
	exhausted atomic.Int64

	transitions chan transition
	unwritten   atomic.Int64
	untracked   atomic.Int64
}

// shard is one part of the maps that requests read.
type shard struct {
	mu    sync.RWMutex
	lanes map[circuit.Identity]*lane
	keys  map[poolKey]*entry
	// The next shard's lock is on another cache line.
	_ [64]byte
}

// poolKey finds the circuit of a credential.
type poolKey struct{ provider, credential string }

// address finds a circuit among all.
type address struct {
	kind circuit.Kind
	key  string
}

// circuitsOfLane is how many circuits a call must pass.
const circuitsOfLane = 4

// lane is a route by one key: the circuits that a call on it must pass.
type lane struct {
	credential, byKey, route, endpoint *entry
	// used is the second in which somebody asked last.
	used atomic.Int64
}

// entry is one circuit with its guard.
type entry struct {
	name circuit.Name
	// shut says that the circuit has to be asked: a claim that finds it false in all
	// of a lane's circuits takes no lock.
	shut atomic.Bool
	// parked is ThrottledUntil in Unix nanoseconds, for readers without the lock.
	parked atomic.Int64

	mu      sync.Mutex
	circuit circuit.Circuit
	// lanes counts who holds this entry, under Registry.mu. Two entries for one
	// circuit would each know half of what happened.
	lanes int
}

// New makes an empty Registry. Every circuit begins closed.
func New(c Config) *Registry {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Registry{
		config: c, seed: maphash.MakeSeed(), circuits: map[address]*entry{},
		transitions: make(chan transition, maxTransitions),
	}
	for i := range r.shards {
		r.shards[i].lanes, r.shards[i].keys = map[circuit.Identity]*lane{}, map[poolKey]*entry{}
	}
	return r
}

func identityOf(r *walk.Rung, credential string) circuit.Identity {
	id := circuit.Identity{
		Deployment: r.Deployment.ID, UpstreamModel: r.Deployment.UpstreamModel,
		Provider: r.Provider.ID, Protocol: string(r.Provider.Protocol), BaseURL: r.Provider.BaseURL, Region: r.Provider.Region,
		Credential: credential,
	}
	if r.Owner == request.Workspace {
		id.Connection = credential
	}
	return id
}

func (r *Registry) shardOf(id string) *shard {
	return &r.shards[maphash.String(r.seed, id)%shardCount]
}

// lane finds the circuits of a route by one key, and makes them on its first call.
// It is nil when there are too many.
func (r *Registry) lane(rung *walk.Rung, credential string, now time.Time) *lane {
	id := identityOf(rung, credential)
	if l := r.shardOf(id.Deployment).find(id, now); l != nil {
		return l
	}
	return r.newLane(rung, id, now)
}

// find looks a lane up and keeps it from being evicted, both under the lock: what
// was found stays the one that others find.
func (s *shard) find(id circuit.Identity, now time.Time) *lane {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l := s.lanes[id]
	if l == nil {
		return nil
	}
	if second := now.Unix(); l.used.Load() != second {
		l.used.Store(second)
	}
	return l
}

func (r *Registry) newLane(rung *walk.Rung, id circuit.Identity, now time.Time) *lane {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.shardOf(id.Deployment)
	if l := s.find(id, now); l != nil {
		return l
	}
	if len(r.circuits) > maxCircuits-circuitsOfLane {
		r.evict(now)
	}
	if len(r.circuits) > maxCircuits-circuitsOfLane {
		r.untracked.Add(1)
		return nil
	}
	masked := rung.Deployment.Masked
	l := &lane{
		credential: r.hold(id.CredentialName(masked)),
		byKey:      r.hold(id.ByKeyName(rung.Model, masked)),
		route:      r.hold(id.RouteName(rung.Model, masked)),
		endpoint:   r.hold(id.EndpointName(masked)),
	}
	l.used.Store(now.Unix())
	s.mu.Lock()
	s.lanes[id] = l
	s.mu.Unlock()
	return l
}

// hold finds or makes a circuit for one more lane. It needs mu.
func (r *Registry) hold(n circuit.Name) *entry {
	e := r.entry(n)
	e.lanes++
	return e
}

// entry finds or makes a circuit. It needs mu.
func (r *Registry) entry(n circuit.Name) *entry {
	at := address{n.Kind, n.Key}
	e := r.circuits[at]
	if e == nil {
		e = &entry{name: n}
		r.circuits[at] = e
		if n.Kind == circuit.Credential {
			s := r.shardOf(n.Credential)
			s.mu.Lock()
			s.keys[poolKey{n.Provider, n.Credential}] = e
			s.mu.Unlock()
		}
	}
	return e
}

const (
	// idleAfter is how long a lane that nobody asks for is kept.
	idleAfter = 10 * time.Minute
	// evictEvery bounds how often all lanes are looked through.
	evictEvery = 10 * time.Second
)

// evict drops lanes that are idle, and circuits that no lane holds and that have
// nothing left to say: one that is open outlives its lanes, and the next lane finds
// it again. It needs mu.
func (r *Registry) evict(now time.Time) {
	if now.Sub(r.evicted) < evictEvery {
		return
	}
	r.evicted = now
	oldest := now.Add(-idleAfter).Unix()
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for id, l := range s.lanes {
			if l.used.Load() > oldest {
				continue
			}
			delete(s.lanes, id)
			for _, e := range l.entries() {
				e.lanes--
			}
		}
		s.mu.Unlock()
	}
	for at, e := range r.circuits {
		if e.lanes == 0 && e.expired(now) {
			r.forget(at, e)
		}
	}
}

// forget drops a circuit. It needs mu.
func (r *Registry) forget(at address, e *entry) {
	delete(r.circuits, at)
	if at.kind == circuit.Credential {
		s := r.shardOf(e.name.Credential)
		s.mu.Lock()
		delete(s.keys, poolKey{e.name.Provider, e.name.Credential})
		s.mu.Unlock()
	}
}

// entries are a lane's circuits in the order in which they are locked and asked:
// what another key could pass comes first.
func (l *lane) entries() [circuitsOfLane]*entry {
	return [circuitsOfLane]*entry{l.credential, l.byKey, l.route, l.endpoint}
}

// expired reports whether forgetting the circuit loses nothing: it is idle, or it
// was open and its window ended long ago without anybody coming.
func (e *entry) expired(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &e.circuit
	return !c.Throttled(now) && !now.Before(c.ExhaustedUntil()) && (c.State(now) == circuit.Closed || now.Sub(c.Until()) > idleAfter)
}

// settle updates what is read without the lock. It needs e.mu.
func (e *entry) settle(now time.Time) {
	e.shut.Store(!e.circuit.Free(now))
	if until := e.circuit.ThrottledUntil(); !until.IsZero() {
		e.parked.Store(until.UnixNano())
	}
}

// Credentials implements walk.World: the keys whose secrets this worker holds, in
// their configured order, and until when each is parked (W18).
func (r *Registry) Credentials(p *catalog.Provider) []walk.Credential {
	if len(p.Keys) == 0 {
		// A provider that asks for no key is called without one.
		return []walk.Credential{{}}
	}
	creds := make([]walk.Credential, 0, len(p.Keys))
	for _, k := range p.Keys {
		if r.config.Secrets.Holds(p, k.ID) {
			creds = append(creds, walk.Credential{ID: k.ID, ParkedUntil: r.parkedUntil(p, k.ID)})
		}
	}
	return creds
}

// credential finds the circuit of a provider's key, nil while nobody has called it.
func (r *Registry) credential(p *catalog.Provider, keyID string) *entry {
	s := r.shardOf(keyID)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.keys[poolKey{p.ID, keyID}]
}

func (r *Registry) parkedUntil(p *catalog.Provider, keyID string) time.Time {
	e := r.credential(p, keyID)
	if e == nil {
		return time.Time{}
	}
	until := e.parked.Load()
	if until == 0 {
		return time.Time{}
	}
	return time.Unix(0, until)
}

// FirstCredential implements walk.World (W17).
func (r *Registry) FirstCredential(p *catalog.Provider, n int) int {
	if n <= 1 || p.KeyStrategy == catalog.Failover {
		return 0
	}
	turn, ok := r.turns.Load(p.ID)
	if !ok {
		turn, _ = r.turns.LoadOrStore(p.ID, new(atomic.Uint64))
	}
	return int((turn.(*atomic.Uint64).Add(1) - 1) % uint64(n))
}

// CacheEstimate implements walk.World. Nothing is observed yet, and without
// evidence the estimate is zero (L7).
func (r *Registry) CacheEstimate(*walk.Rung) float64 { return 0 }

// Uniform implements walk.World.
func (r *Registry) Uniform() float64 { return rand.Float64() }

package features_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/adapters/dialect/registry"
	"github.com/sluice-gateway/sluice/adapters/dialect/responses"
	"github.com/sluice-gateway/sluice/adapters/gateway"
	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/adapters/health"
	"github.com/sluice-gateway/sluice/adapters/http/adminapi/adminapitest"
	"github.com/sluice-gateway/sluice/adapters/http/api"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/adapters/tokens"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/idempotency"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

// servingWorld is a worker over real sockets: callers and operators talk HTTP to it,
// and it talks HTTP to a provider. Its log and its configuration are in memory.
type servingWorld struct {
	admin    *adminapitest.Server
	log      *gatewaytest.Log
	upstream *upstream
	base     string
	client   *http.Client
	end      []func()
}

var countTokens = sync.OnceValue(tokens.NewEstimator)

// newServingWorld starts everything. slots and wait are those of A7, 0 for the
// defaults; held are the providers whose keys the worker has. One that is not
// configured has not read its catalog.
func newServingWorld(slots int, wait time.Duration, held func(provider, keyID string) bool, configured bool) (*servingWorld, error) {
	w := &servingWorld{log: gatewaytest.NewLog(), upstream: newUpstream(), client: &http.Client{Transport: &http.Transport{}}}
	w.end = append(w.end, w.upstream.server.Close, w.client.CloseIdleConnections)
	admin, err := adminapitest.Start()
	if err != nil {
		return nil, err
	}
	w.admin = admin
	w.admin.Held = held
	w.end = append(w.end, admin.Close)
	calls := provider.New(provider.Config{Outbound: registry.Outbound(), InternalHosts: network.MustHosts("127.0.0.1")})
	w.end = append(w.end, calls.Close)
	keys := keysHeld(held)
	circuits := health.New(health.Config{Secrets: keys})
	g := gateway.New(gateway.Config{
		Log: w.log, Providers: calls, Estimator: countTokens(), Secrets: keys, Health: circuits,
		Hasher: idempotency.NewHasher([]byte("secret")), ShardOf: func(string) int16 { return 0 },
		AdmissionSlots: slots, AdmissionWait: wait, Worker: "w1", Now: time.Now,
		NewID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) }, Logger: slog.New(slog.DiscardHandler),
	})
	w.end = append(w.end, g.Close)
	var current api.Catalog = admin.Catalog
	if !configured {
		current = live.New(admin.Log) // has read nothing
	}
	return w, w.listen(g, circuits, current)
}

func (w *servingWorld) listen(g *gateway.Gateway, circuits *health.Registry, current api.Catalog) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.base = "http://" + listener.Addr().String()
	outer := api.New(api.Config{
		Catalog: current, Gateway: g, Tokens: g.Estimator, Stored: responses.NewStore(time.Now), Health: circuits,
		Log: w.log, ShardOf: g.ShardOf, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	server := edge.New(edge.Config{Listener: listener, OnError: outer.EdgeError})
	outer.Register(server)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(ctx) })
	w.end = append(w.end, func() { stop(); running.Wait() })
	return nil
}

func (w *servingWorld) close() {
	w.upstream.letGo()
	for _, end := range slices.Backward(w.end) {
		end()
	}
}

// keysHeld are the credentials that the worker has.
type keysHeld func(provider, keyID string) bool

func (k keysHeld) Holds(p *catalog.Provider, keyID string) bool { return k(p.ID, keyID) }

func (k keysHeld) Lookup(_ context.Context, p *catalog.Provider, keyID string) (secrets.Credential, error) {
	if !k(p.ID, keyID) {
		return secrets.Credential{}, &secrets.MissingError{Provider: p.ID, KeyID: keyID}
	}
	return secrets.Credential{Key: "sk-of-the-provider"}, nil
}

// upstream is a provider that speaks Chat Completions, and Messages without a stream. A model's name says how its
// calls end: "down..." answers 503, "wait..." answers 503 once it is let go, and any
// other serves.
type upstream struct {
	server *httptest.Server
	arrive chan struct{}
	leave  chan struct{}
	once   sync.Once

	mu    sync.Mutex
	calls []upstreamCall
}

type upstreamCall struct {
	model string
	body  []byte
}

func newUpstream() *upstream {
	u := &upstream{arrive: make(chan struct{}, 16), leave: make(chan struct{})}
	u.server = httptest.NewServer(u)
	return u
}

func (u *upstream) letGo() { u.once.Do(func() { close(u.leave) }) }

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var asked struct {
		Model  string
		Stream bool
	}
	_ = json.Unmarshal(body, &asked)
	u.mu.Lock()
	u.calls = append(u.calls, upstreamCall{asked.Model, body})
	u.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if strings.HasPrefix(asked.Model, "wait") {
		u.arrive <- struct{}{}
		<-u.leave
	}
	if strings.HasPrefix(asked.Model, "wait") || strings.HasPrefix(asked.Model, "down") {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error":{"message":"down","type":"server_error"}}`)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/messages") {
		_, _ = fmt.Fprintf(w, `{"id":"m1","type":"message","role":"assistant","model":%q,"content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":2}}`, asked.Model)
		return
	}
	if asked.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, streamed)
		return
	}
	_, _ = fmt.Fprintf(w, `{"id":"c1","object":"chat.completion","created":1,"model":%q,"choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}`, asked.Model)
}

const streamed = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello."},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}

data: [DONE]

`

// models are the upstream models that were called, in order.
func (u *upstream) models() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var list []string
	for _, c := range u.calls {
		list = append(list, c.model)
	}
	return list
}

func (u *upstream) last() upstreamCall {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.calls) == 0 {
		return upstreamCall{}
	}
	return u.calls[len(u.calls)-1]
}

// caller is what came back to one.
type caller struct {
	status int
	header http.Header
	body   []byte
}

func (w *servingWorld) send(method, path, body string, header http.Header) (caller, error) {
	req, err := http.NewRequest(method, w.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return caller{}, err
	}
	req.Header = header
	resp, err := w.client.Do(req)
	if err != nil {
		return caller{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return caller{resp.StatusCode, resp.Header, text}, err
}

// newKey makes a key over the admin API.
func (w *servingWorld) newKey(tenant, body string) (id, key string, err error) {
	a, err := w.admin.Do(adminapitest.Ask{Method: "POST", Path: "/tenants/" + tenant + "/keys", Body: body})
	if err == nil && a.Status != http.StatusCreated {
		err = fmt.Errorf("no key: %s", a.Body)
	}
	return strings.Trim(a.Field("id"), `"`), strings.Trim(a.Field("key"), `"`), err
}

// events are those of one request, or of the last one when id is empty.
func (w *servingWorld) events(id string) ([]event.Event, error) {
	stored, err := w.log.ReadStream(context.Background(), "request/"+id, 1, 1000)
	if err != nil {
		return nil, err
	}
	var list []event.Event
	for _, s := range stored {
		e, err := event.Decode(s.Type, s.Version, s.Data)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// requestIDs are the requests on record.
func (w *servingWorld) requestIDs() []string {
	var ids []string
	for _, stream := range w.log.Names() {
		if id, ok := strings.CutPrefix(stream, "request/"); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// first is the first event of a kind.
func first[T event.Event](events []event.Event) (T, bool) {
	for _, e := range events {
		if v, ok := e.(T); ok {
			return v, true
		}
	}
	var none T
	return none, false
}

func attemptsOf(events []event.Event) []string {
	var list []string
	for _, e := range events {
		switch e := e.(type) {
		case request.RouteSkipped:
			list = append(list, "skip "+string(e.Reason))
		case request.AttemptReserved:
			list = append(list, e.Deployment)
		}
	}
	return list
}

// holdFirst makes the log keep the first append waiting until released.
func (w *servingWorld) holdFirst() (arrived <-chan struct{}, release func()) {
	held, here := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.log.Entered = func(eventstore.Append) {
		mine := false
		once.Do(func() { mine = true })
		if mine {
			close(here)
			<-held
		}
	}
	return here, sync.OnceFunc(func() { close(held) })
}

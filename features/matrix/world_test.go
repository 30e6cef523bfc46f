package matrix

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/sluice-gateway/sluice/adapters/dialect/responses"
	"github.com/sluice-gateway/sluice/adapters/gateway/gatewaytest"
	"github.com/sluice-gateway/sluice/adapters/http/api"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
)

// world is a gateway behind a socket, in front of one scripted provider that speaks
// every outbound dialect. It keeps what the provider was asked last.
type world struct {
	t       *testing.T
	client  *http.Client
	address string
	key     string

	mu    sync.Mutex
	asked []byte
	calls int
}

// fixed is a catalog that does not change.
type fixed struct{ snapshot *catalog.Snapshot }

func (f fixed) Current() *catalog.Snapshot { return f.snapshot }

func newWorld(t *testing.T) *world {
	w := &world{t: t, client: &http.Client{Transport: &http.Transport{}}}
	b := gatewaytest.New(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.asked, w.calls = body, w.calls+1
		w.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		b.Provider.ServeHTTP(out, r)
	}))
	t.Cleanup(upstream.Close)
	b.Objects = objects(upstream.URL)
	snapshot, key := b.SnapshotWithKey(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	outer := api.New(api.Config{
		Catalog: fixed{snapshot}, Gateway: b, Tokens: b.Estimator, Stored: responses.NewStore(time.Now), Log: b.Log,
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	server := edge.New(edge.Config{Listener: listener, OnError: outer.EdgeError})
	outer.Register(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(context.Background()) }()
	t.Cleanup(func() {
		w.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		<-done
	})
	w.address, w.key = "http://"+listener.Addr().String(), key
	return w
}

// objects has one provider for each outbound dialect, and behind it a model for each
// script that a cell asks for.
func objects(upstream string) catalog.Objects {
	in, out := decimal.RequireFromString("3"), decimal.RequireFromString("15")
	o := catalog.Objects{
		Tenants: []catalog.Tenant{{ID: "acme", Retention: catalog.Retention{Responses: true}}},
	}
	for _, to := range outbounds {
		p := catalog.Provider{ID: to.name, Protocol: to.protocol, BaseURL: upstream + to.base, Region: to.region, Keys: []catalog.ProviderKey{{ID: "k1", Env: "K", EnvAccessKey: "A", EnvSecretKey: "S"}}}
		o.Providers = append(o.Providers, p)
		for _, script := range scripts() {
			slug := modelOf(to, script)
			d := catalog.Deployment{
				ID: slug, Provider: p.ID, UpstreamModel: script, Prices: money.Prices{Input: &in, Output: &out}, Context: catalog.Context{MaxOutput: 4000},
			}
			o.Deployments = append(o.Deployments, d)
			o.Models = append(o.Models, catalog.Model{Slug: slug, ExactModel: slug, Chain: []catalog.Rung{{Deployment: d.ID}}})
		}
	}
	for _, first := range outbounds {
		for _, second := range outbounds {
			slug := failoverOf(first, second)
			o.Models = append(o.Models, catalog.Model{Slug: slug, ExactModel: slug, Chain: []catalog.Rung{
				{Deployment: modelOf(first, down)}, {Deployment: modelOf(second, talkAndCall)},
			}})
		}
	}
	return o
}

// failoverOf names the model whose first route is down.
func failoverOf(first, second outbound) string { return "failover/" + first.name + "/" + second.name }

// modelOf names the model that a script is played under by one outbound dialect.
func modelOf(to outbound, script string) string { return to.name + "/" + script }

// scripts are all that the cells ask for.
func scripts() (list []string) {
	list = slices.Clone(clientScripts)
	for _, c := range capabilities {
		if !slices.Contains(list, c.script) {
			list = append(list, c.script)
		}
	}
	return list
}

// exchange is one request and what came of it on both sides.
type exchange struct {
	status int
	header http.Header
	body   []byte
	// asked is what the provider was sent, in its own dialect; calls is how often.
	asked string
	calls int
}

// send puts a request through the gateway.
func (w *world) send(from inbound, body string) exchange {
	w.t.Helper()
	w.mu.Lock()
	w.asked, w.calls = nil, 0
	w.mu.Unlock()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.address+from.path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	req.Header.Set("Content-Type", "application/json")
	reply, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer reply.Body.Close()
	read, err := io.ReadAll(reply.Body)
	if err != nil {
		w.t.Fatalf("the reply broke: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return exchange{status: reply.StatusCode, header: reply.Header, body: read, asked: string(w.asked), calls: w.calls}
}

func (e exchange) String() string {
	return fmt.Sprintf("%d %s\n--- the provider was asked (%d calls)\n%s", e.status, e.body, e.calls, e.asked)
}

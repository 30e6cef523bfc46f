// Package adminapitest runs the admin API in this process over a log in memory, for
// tests.
package adminapitest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/config/configtest"
	"github.com/sluice-gateway/sluice/adapters/health"
	"github.com/sluice-gateway/sluice/adapters/http/adminapi"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/adapters/reconciler"
	"github.com/sluice-gateway/sluice/adapters/reconciler/reconcilertest"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

// Bootstrap is the server's bootstrap key.
const Bootstrap = "bootstrap-key-of-the-test"

// Server is a running admin API.
type Server struct {
	Log     *configtest.Log
	Catalog *live.Live
	// Held tells which of the providers' keys are at hand; all by default.
	Held func(provider, keyID string) bool
	// Refused are the base URLs that the worker would not call.
	Refused map[string]bool
	// Rebuild stands in for the rebuild of a read model; it does nothing by default.
	Rebuild func(ctx context.Context, name string, progress func(projections.Progress)) error
	// Look stands in for the checks of a reconciliation; it finds nothing by default.
	Look reconciler.Look
	// Leads is what other workers would share.
	Leads *reconcilertest.Leads

	base   string
	client *http.Client
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// Start serves on a free port of this machine until Close.
func Start() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	log := configtest.NewLog()
	s := &Server{
		Log: log, Catalog: live.New(log), base: "http://" + listener.Addr().String() + "/admin/v1",
		client: &http.Client{Transport: &http.Transport{}}, stop: stop,
		Held:    func(string, string) bool { return true },
		Rebuild: func(context.Context, string, func(projections.Progress)) error { return nil },
		Look: func(context.Context, reconciliation.Check, func(int64, int64)) (reconciliation.Finding, error) {
			return reconciliation.Finding{}, nil
		},
		Leads: &reconcilertest.Leads{},
	}
	runs := reconciler.New(reconciler.Config{
		Log: log, Leads: s.Leads, Worker: "w1", Now: time.Now, NewID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) },
		Look: func(ctx context.Context, check reconciliation.Check, progress func(int64, int64)) (reconciliation.Finding, error) {
			return s.Look(ctx, check, progress)
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	api := adminapi.New(adminapi.Config{
		Log: log, Catalog: s.Catalog, Bootstrap: Bootstrap, Worker: "w1",
		Holds:    func(p *catalog.Provider, keyID string) bool { return s.Held(p.ID, keyID) },
		Refuses:  func(baseURL string) bool { return s.Refused[baseURL] },
		Circuits: health.New(health.Config{}), Requests: nil, Projections: noProjections{},
		Rebuild: func(ctx context.Context, name string, progress func(projections.Progress)) error {
			return s.Rebuild(ctx, name, progress)
		},
		Reconciliations: runs,
		Now:             time.Now, Random: rand.Reader, Logger: slog.New(slog.DiscardHandler),
	})
	server := edge.New(edge.Config{Listener: listener, OnError: adminapi.EdgeError})
	api.Register(server)
	s.ended.Go(func() { _ = server.Serve(ctx) })
	s.ended.Go(func() { api.Run(ctx) })
	s.ended.Go(func() { runs.Run(ctx) })
	return s, s.Catalog.Refresh(ctx)
}

type noProjections struct{}

func (noProjections) Status(context.Context) ([]projections.Status, error) { return nil, nil }

// Close ends the server.
func (s *Server) Close() {
	s.client.CloseIdleConnections()
	s.stop()
	s.ended.Wait()
}

// Apply does what `sluice apply` does with a file's text.
func (s *Server) Apply(text string) error {
	file, err := config.Load(strings.NewReader(text), "test.yaml")
	if err != nil {
		return err
	}
	ctx := context.Background()
	state, err := live.Read(ctx, s.Log)
	if err != nil {
		return err
	}
	by := eventstore.Meta{Actor: "cli:ada"}
	return errors.Join(config.Apply(ctx, s.Log, config.Diff(state, file.Objects), by, time.Now()), s.Catalog.Refresh(ctx))
}

// Ask is one request.
type Ask struct {
	Method, Path string
	// Key is Bootstrap when empty.
	Key string
	// IfMatch is sent as it is when not empty.
	IfMatch string
	Body    string
}

// Answer is what came back.
type Answer struct {
	Status int
	ETag   string
	Header http.Header
	Body   []byte
}

// Do asks and reads the whole answer. Path begins behind /admin/v1.
func (s *Server) Do(ask Ask) (Answer, error) {
	req, err := http.NewRequest(ask.Method, s.base+ask.Path, bytes.NewReader([]byte(ask.Body)))
	if err != nil {
		return Answer{}, err
	}
	key := ask.Key
	if key == "" {
		key = Bootstrap
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if ask.IfMatch != "" {
		req.Header.Set("If-Match", ask.IfMatch)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	body, err := io.ReadAll(resp.Body)
	err = errors.Join(err, resp.Body.Close())
	return Answer{Status: resp.StatusCode, ETag: resp.Header.Get("ETag"), Header: resp.Header, Body: body}, err
}

// Field is a value of the answer's JSON by the names that lead to it, as JSON: empty
// if there is none.
func (a Answer) Field(path string) string {
	var v any
	decoder := json.NewDecoder(bytes.NewReader(a.Body))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		return fmt.Sprintf("not JSON: %s", a.Body)
	}
	for name := range strings.SplitSeq(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		if v, ok = object[name]; !ok {
			return ""
		}
	}
	text, _ := json.Marshal(v)
	return string(text)
}

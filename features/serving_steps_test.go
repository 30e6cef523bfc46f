package features_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cucumber/godog"
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/http/adminapi/adminapitest"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/request"
)

// servingScene is a worker that callers and operators talk to.
type servingScene struct {
	world  *servingWorld
	config string
	slots  int
	wait   time.Duration
	lacks  []string
	keys   map[string]sentKey
	header http.Header
	last   caller
	// known are the requests of before the last one.
	known []string
	// under way is the answer of a request that is not over.
	underWay <-chan answered
	release  func()
	snapshot string
}

type sentKey struct{ id, key string }

type answered struct {
	caller
	err error
}

func registerServingSteps(sc *godog.ScenarioContext) {
	s := &servingScene{}
	sc.Before(func(ctx context.Context, _ *godog.Scenario) (context.Context, error) {
		*s = servingScene{keys: map[string]sentKey{}, header: http.Header{}}
		return ctx, nil
	})
	sc.After(func(ctx context.Context, _ *godog.Scenario, err error) (context.Context, error) {
		if s.release != nil {
			s.release()
		}
		if s.world != nil {
			s.world.close()
		}
		return ctx, err
	})
	sc.Step(`^a worker is configured with$`, func(text *godog.DocString) { s.config = text.Content })
	sc.Step(`^the worker lacks the keys of "([^"]*)"$`, func(list string) { s.lacks = words(list) })
	sc.Step(`^the worker admits (\d+) requests? of an organization at once and lets others wait (\S+)$`, s.admits)
	sc.Step(`^the worker has not read its configuration$`, func() error { return s.start(false) })
	sc.Step(`^a key of "([^"]*)"$`, func(tenant string) error { return s.newKey(tenant, tenant, "{}") })
	sc.Step(`^a key of "([^"]*)" with (\{.*\})$`, func(tenant, body string) error { return s.newKey(tenant, tenant, body) })
	sc.Step(`^another key "([^"]*)" of "([^"]*)"$`, func(name, tenant string) error { return s.newKey(name, tenant, "{}") })
	sc.Step(`^the header "([^"]*)" is "([^"]*)"$`, func(name, value string) { s.header.Set(name, value) })
	sc.Step(`^"([^"]*)" sends (\{.*\})$`, func(who, body string) error { return s.send(who, "/v1/chat/completions", body) })
	sc.Step(`^"([^"]*)" sends to "([^"]*)" (\{.*\})$`, s.send)
	sc.Step(`^"([^"]*)" gets "([^"]*)"$`, s.get)
	sc.Step(`^the key is sent as "([^"]*)"$`, s.sendAs)
	sc.Step(`^"([^"]*)" sends (\{.*\}) and its call has begun$`, s.begin)
	sc.Step(`^"([^"]*)" sends (\{.*\}) and waits for the log$`, s.beginHeld)
	sc.Step(`^the log goes on$`, func() { s.release() })
	sc.Step(`^the call that has begun fails$`, func() { s.world.upstream.letGo() })
	sc.Step(`^the request that was under way is answered with (\d+)$`, s.underWayIs)
	sc.Step(`^the operator puts (\S+) at "([^"]*)"$`, s.put)
	sc.Step(`^the operator deletes "([^"]*)"$`, s.remove)
	sc.Step(`^the key of "([^"]*)" is revoked$`, func(who string) error { return s.remove("/tenants/acme/keys/" + s.keys[who].id) })
	sc.Step(`^the answer has status (\d+)$`, func(want int) error { return s.status(want, "") })
	sc.Step(`^the caller is answered "([^"]*)" with status (\d+)$`, func(code string, want int) error { return s.status(want, code) })
	sc.Step(`^the answer's "([^"]*)" is "([^"]*)"$`, func(path, want string) error {
		return same(path, want, gjson.GetBytes(s.last.body, path).String())
	})
	sc.Step(`^the list names "([^"]*)"$`, s.listNames)
	sc.Step(`^the answer says "([^"]*)"$`, s.says)
	sc.Step(`^the reply's header "([^"]*)" is "([^"]*)"$`, func(name, want string) error { return same(name, want, s.last.header.Get(name)) })
	sc.Step(`^the reply has the header "([^"]*)"$`, func(name string) error { return same(name, true, s.last.header.Get(name) != "") })
	sc.Step(`^the provider was called for "([^"]*)"$`, func(want string) error {
		return same("calls", want, strings.Join(s.world.upstream.models(), ", "))
	})
	sc.Step(`^the provider was not called$`, func() error { return same("calls", 0, len(s.world.upstream.models())) })
	sc.Step(`^the provider was sent "([^"]*)"$`, s.wasSent)
	sc.Step(`^nothing is on record$`, func() error { return same("requests", 0, len(s.world.requestIDs())) })
	sc.Step(`^the record has the refusal "([^"]*)" of the scope "([^"]*)"$`, s.refusalIs)
	sc.Step(`^the record's refusal has the limit (\d+) and saw (\d+) "([^"]*)"$`, s.refusalSaw)
	sc.Step(`^the record's refusal says when to come back$`, s.refusalResets)
	sc.Step(`^the record skips with "([^"]*)" for "([^"]*)" of "([^"]*)"$`, s.skipIs)
	sc.Step(`^the record has the moves "([^"]*)"$`, s.recordMoves)
	sc.Step(`^the record estimates (\d+) tokens in and (\d+) out$`, s.estimated)
	sc.Step(`^the record has one admission with the deadline (\d+) and (\d+) attempts$`, s.oneAdmission)
	sc.Step(`^the record's priority is "([^"]*)"$`, s.priorityIs)
	sc.Step(`^the record's snapshot is the one of before the edit$`, s.snapshotIsOld)
	sc.Step(`^neither log holds the key of "([^"]*)"$`, s.noKeyInLogs)
}

func (s *servingScene) admits(slots int, wait string) (err error) {
	s.slots = slots
	s.wait, err = time.ParseDuration(wait)
	return err
}

// start is called by the first step that needs the worker.
func (s *servingScene) start(configured bool) (err error) {
	if s.world != nil {
		return nil
	}
	held := func(provider, _ string) bool { return !slices.Contains(s.lacks, provider) }
	if s.world, err = newServingWorld(s.slots, s.wait, held, configured); err != nil {
		return err
	}
	if configured {
		return s.world.admin.Apply(strings.ReplaceAll(s.config, "PROVIDER", s.world.upstream.server.URL+"/v1"))
	}
	return nil
}

func (s *servingScene) newKey(name, tenant, body string) error {
	if err := s.start(true); err != nil {
		return err
	}
	id, key, err := s.world.newKey(tenant, body)
	s.keys[name] = sentKey{id, key}
	return err
}

func (s *servingScene) headers(who string) http.Header {
	header := s.header.Clone()
	header.Set("Authorization", "Bearer "+s.keys[who].key)
	return header
}

func (s *servingScene) send(who, path, body string) (err error) {
	s.known = s.world.requestIDs()
	s.last, err = s.world.send("POST", path, body, s.headers(who))
	return err
}

func (s *servingScene) get(who, path string) (err error) {
	s.last, err = s.world.send("GET", path, "", s.headers(who))
	return err
}

func (s *servingScene) sendAs(header string) (err error) {
	value := s.keys["acme"].key
	if header == "Authorization" {
		value = "Bearer " + value
	}
	s.last, err = s.world.send("GET", "/v1/models", "", http.Header{http.CanonicalHeaderKey(header): {value}})
	return err
}

func (s *servingScene) goSend(who, body string) {
	done := make(chan answered, 1)
	s.underWay, s.known = done, s.world.requestIDs()
	header := s.headers(who)
	go func() {
		a, err := s.world.send("POST", "/v1/chat/completions", body, header)
		done <- answered{a, err}
	}()
}

func (s *servingScene) begin(who, body string) error {
	s.goSend(who, body)
	select {
	case <-s.world.upstream.arrive:
		return nil
	case a := <-s.underWay:
		return fmt.Errorf("it is over: %d %s %w", a.status, a.body, a.err)
	}
}

func (s *servingScene) beginHeld(who, body string) error {
	var arrived <-chan struct{}
	arrived, s.release = s.world.holdFirst()
	s.goSend(who, body)
	select {
	case <-arrived:
		return nil
	case a := <-s.underWay:
		return fmt.Errorf("it is over: %d %s %w", a.status, a.body, a.err)
	}
}

func (s *servingScene) underWayIs(status int) error {
	a := <-s.underWay
	s.last = a.caller
	return errors.Join(a.err, s.status(status, ""))
}

func (s *servingScene) admin(ask adminapitest.Ask) error {
	if s.snapshot == "" {
		s.snapshot = s.world.admin.Catalog.Current().ID
	}
	read, err := s.world.admin.Do(adminapitest.Ask{Method: "GET", Path: ask.Path})
	if err != nil {
		return err
	}
	ask.IfMatch = read.ETag
	a, err := s.world.admin.Do(ask)
	if err == nil && a.Status >= 300 {
		err = fmt.Errorf("%d %s", a.Status, a.Body)
	}
	return err
}

func (s *servingScene) put(body, address string) error {
	return s.admin(adminapitest.Ask{Method: "PUT", Path: address, Body: body})
}

func (s *servingScene) remove(address string) error {
	return s.admin(adminapitest.Ask{Method: "DELETE", Path: address})
}

func (s *servingScene) status(want int, code string) error {
	if s.last.status != want || code != "" && gjson.GetBytes(s.last.body, "error.code").String() != code {
		return fmt.Errorf("want %d %s, got %d %s", want, code, s.last.status, s.last.body)
	}
	return nil
}

func (s *servingScene) listNames(want string) error {
	var names []string
	for _, m := range gjson.GetBytes(s.last.body, "data.#.id").Array() {
		names = append(names, m.String())
	}
	return same("names", want, strings.Join(names, ", "))
}

func (s *servingScene) says(want string) error {
	if text := strings.ReplaceAll(string(s.last.body), `\"`, "'"); !strings.Contains(text, want) {
		return fmt.Errorf("got %s", text)
	}
	return nil
}

// wasSent compares a part of the last call's body, written as path=value.
func (s *servingScene) wasSent(want string) error {
	path, value, _ := strings.Cut(want, "=")
	return same(path, value, gjson.GetBytes(s.world.upstream.last().body, path).String())
}

// record is what the log has of the last request.
func (s *servingScene) record() ([]event.Event, error) {
	for _, id := range s.world.requestIDs() {
		if !slices.Contains(s.known, id) {
			return s.world.events(id)
		}
	}
	return nil, errors.New("nothing is on record")
}

// refusal is the last request's, in either of its two places.
func (s *servingScene) refusal() (request.Refusal, []request.RouteSkipped, error) {
	events, err := s.record()
	if err != nil {
		return request.Refusal{}, nil, err
	}
	if r, ok := first[request.RequestRefused](events); ok {
		if len(events) != 1 {
			return r.Refusal, nil, fmt.Errorf("a refused request has %d events", len(events))
		}
		return r.Refusal, r.Skipped, nil
	}
	if f, ok := first[request.RequestFinalized](events); ok && f.Refusal != nil {
		return *f.Refusal, nil, nil
	}
	return request.Refusal{}, nil, fmt.Errorf("not refused: %+v", events)
}

func (s *servingScene) refusalIs(code, scope string) error {
	r, _, err := s.refusal()
	if scope == "none" {
		scope = ""
	}
	return errors.Join(err, same("code", code, r.Code), same("scope", scope, r.Scope))
}

func (s *servingScene) refusalSaw(limit, used int64, unit string) error {
	r, _, err := s.refusal()
	return errors.Join(err, same("limit", limit, r.Limit), same("used", used, r.Used), same("unit", unit, r.Unit))
}

func (s *servingScene) refusalResets() error {
	r, _, err := s.refusal()
	if err == nil {
		_, err = time.Parse(time.RFC3339, r.Resets)
	}
	return err
}

func (s *servingScene) skipIs(reason, detail, deployment string) error {
	events, err := s.record()
	if err != nil {
		return err
	}
	_, skips, _ := s.refusal()
	for _, e := range events {
		if skip, ok := e.(request.RouteSkipped); ok {
			skips = append(skips, skip)
		}
	}
	for _, skip := range skips {
		if skip.Provider == deployment && string(skip.Reason) == reason && slices.Contains(slices.Collect(maps.Values(skip.Detail)), detail) {
			return nil
		}
	}
	return fmt.Errorf("got %+v", skips)
}

func (s *servingScene) recordMoves(want string) error {
	events, err := s.record()
	return errors.Join(err, same("moves", want, strings.Join(attemptsOf(events), ", ")))
}

func (s *servingScene) admitted() (a request.RequestAdmitted, events []event.Event, err error) {
	if events, err = s.record(); err != nil {
		return a, nil, err
	}
	a, ok := first[request.RequestAdmitted](events)
	if !ok {
		return a, events, fmt.Errorf("not admitted: %+v", events)
	}
	return a, events, nil
}

func (s *servingScene) estimated(in, out int64) error {
	a, _, err := s.admitted()
	return errors.Join(err, same("input", in, a.Estimate.InputTokens), same("output", out, a.Estimate.MaxOutputTokens))
}

func (s *servingScene) oneAdmission(deadline int64, attempts int) error {
	a, events, err := s.admitted()
	if err != nil {
		return err
	}
	admissions, calls := 0, 0
	for _, e := range events {
		switch e.(type) {
		case request.RequestAdmitted:
			admissions++
		case request.AttemptReserved:
			calls++
		}
	}
	return errors.Join(same("admissions", 1, admissions), same("attempts", attempts, calls), same("deadline", deadline, a.DeadlineMS),
		same("key", s.keys["acme"].id, a.Key), same("requests", 1, len(s.world.requestIDs())))
}

func (s *servingScene) priorityIs(want string) error {
	a, _, err := s.admitted()
	return errors.Join(err, same("priority", want, a.Priority))
}

func (s *servingScene) snapshotIsOld() error {
	a, _, err := s.admitted()
	return errors.Join(err, same("snapshot", s.snapshot, a.Snapshot), same("the snapshot has changed", true, s.snapshot != s.world.admin.Catalog.Current().ID))
}

func (s *servingScene) noKeyInLogs(who string) error {
	key := strings.TrimPrefix(s.keys[who].key, "sk-sluice-")
	config, err := json.Marshal(s.world.admin.Log.Events)
	if err != nil {
		return err
	}
	texts := []string{string(config)}
	for _, e := range s.world.admin.Log.Events {
		texts = append(texts, string(e.Data))
	}
	for _, id := range s.world.requestIDs() {
		events, err := s.world.events(id)
		if err != nil {
			return err
		}
		texts = append(texts, fmt.Sprintf("%+v", events))
	}
	for i, text := range texts {
		if key == "" || strings.Contains(text, key) {
			return errors.New("text " + strconv.Itoa(i) + " holds it")
		}
	}
	return nil
}

package features_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/config/configtest"
	"github.com/sluice-gateway/sluice/adapters/http/adminapi/adminapitest"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

// configurationScene is an admin API with a log, and people who edit through it.
type configurationScene struct {
	server *adminapitest.Server
	held   []string
	// loaded is what each editor has open: its address and revision.
	loaded map[string]opened
	answer adminapitest.Answer
	// saved is the number of events and the snapshot before the scenario's edits.
	events   int
	before   string
	admitted catalog.Plan
	stored   []byte
}

type opened struct{ address, etag string }

func registerConfigurationSteps(sc *godog.ScenarioContext) {
	s := &configurationScene{}
	sc.Before(func(ctx context.Context, _ *godog.Scenario) (context.Context, error) {
		*s = configurationScene{loaded: map[string]opened{}, held: []string{"east", "west"}}
		return ctx, nil
	})
	sc.After(func(ctx context.Context, _ *godog.Scenario, err error) (context.Context, error) {
		if s.server != nil {
			s.server.Close()
		}
		return ctx, err
	})
	sc.Step(`^a gateway that serves$`, s.serves)
	sc.Step(`^the worker holds the keys of "([^"]*)"$`, func(list string) { s.held = words(list) })
	sc.Step(`^(\w+) loads "([^"]*)"$`, s.load)
	sc.Step(`^(\w+) saves ([\[{].*[\]}])$`, s.save)
	sc.Step(`^(\w+) saves ([\[{].*[\]}]) to "([^"]*)" without loading it$`, s.saveTo)
	sc.Step(`^(\w+) patches it with ({.*})$`, s.patch)
	sc.Step(`^(\w+) deletes it$`, s.remove)
	sc.Step(`^it is (?:saved|there)$`, s.isSaved)
	sc.Step(`^it is refused as "([^"]*)" at "([^"]*)"$`, s.refusedAt)
	sc.Step(`^the edit is refused as "([^"]*)"$`, s.refusedAs)
	sc.Step(`^the refusal names the revision (\d+)$`, func(want string) error { return same("revision", want, s.field("error.revision")) })
	sc.Step(`^the refusal does not hold "([^"]*)"$`, s.doesNotHold)
	sc.Step(`^nothing was written$`, func() error { return same("events", strconv.Itoa(s.events), strconv.Itoa(len(s.server.Log.Events))) })
	sc.Step(`^the last event of "([^"]*)" is "([^"]*)" by "([^"]*)"$`, s.lastEvent)
	sc.Step(`^the snapshot has another id$`, s.anotherSnapshot)
	sc.Step(`^requests of "([^"]*)" for "([^"]*)" are (?:served by|planned as) "([^"]*)"$`, s.plannedAs)
	sc.Step(`^its state is "([^"]*)"$`, func(want string) error { return same("state", want, s.field("state")) })
	sc.Step(`^its chain is (\[.*\])$`, func(want string) error { return same("chain", want, s.answer.Field("chain")) })
	sc.Step(`^its "([^"]*)" is "([^"]*)"$`, func(path, want string) error { return same(path, want, s.field(path)) })
	sc.Step(`^it has no "([^"]*)"$`, func(path string) error { return same(path, "", s.field(path)) })
	sc.Step(`^the log lost the chain of "([^"]*)"$`, s.loseChain)
	sc.Step(`^a request of "([^"]*)" for "([^"]*)" was admitted$`, s.admit)
	sc.Step(`^the admitted request is still served by "([^"]*)"$`, func(want string) error { return same("plan", want, rungsOf(s.admitted)) })
	sc.Step(`^its export, applied to an empty log, gives the same snapshot$`, s.exportRoundTrips)
	sc.Step(`^the log holds an event that this release does not know$`, s.fromTheFuture)
	sc.Step(`^it lists "([^"]*)" as passed over$`, s.passedOver)
	sc.Step(`^the weight of "([^"]*)" is (\S+)$`, func(tenant string, want float64) error {
		return same("weight", want, s.server.Catalog.Current().Weight(tenant))
	})
	sc.Step(`^the snapshot is stored$`, s.store)
	sc.Step(`^the log cannot be read$`, func() error {
		s.server.Log.Away(errors.New("the database is away"))
		if s.server.Catalog.Refresh(context.Background()) == nil {
			return errors.New("it was read")
		}
		return nil
	})
	sc.Step(`^the log can be read again$`, func() { s.server.Log.Away(nil) })
	sc.Step(`^a snapshot that an older release published$`, s.olderSnapshot)
	sc.Step(`^it is read under its own id, though this release would give it another$`, s.olderIsRead)
	sc.Step(`^the same bytes under another id are refused$`, func() error {
		if _, err := catalog.ReadDocument(s.before, s.stored); err == nil {
			return errors.New("they were read")
		}
		return nil
	})
	sc.Step(`^the stored snapshot is still read under its own id$`, s.storedIsRead)
}

func (s *configurationScene) serves(file *godog.DocString) (err error) {
	if s.server, err = adminapitest.Start(); err != nil {
		return err
	}
	s.server.Held = func(provider, keyID string) bool { return keyID == "k1" && slices.Contains(s.held, provider) }
	if err := s.server.Apply(file.Content); err != nil {
		return err
	}
	s.events, s.before = len(s.server.Log.Events), s.server.Catalog.Current().ID
	return nil
}

func (s *configurationScene) load(who, address string) (err error) {
	s.answer, err = s.server.Do(adminapitest.Ask{Method: "GET", Path: address})
	s.loaded[who] = opened{address, s.answer.ETag}
	return err
}

func (s *configurationScene) write(who, method, body string) (err error) {
	at := s.loaded[who]
	s.answer, err = s.server.Do(adminapitest.Ask{Method: method, Path: at.address, IfMatch: at.etag, Body: body})
	if s.answer.Status < 300 {
		// An editor that saved has the new revision; one that was refused keeps the old.
		at.etag = s.answer.ETag
		s.loaded[who] = at
	}
	return err
}

func (s *configurationScene) save(who, body string) error  { return s.write(who, "PUT", body) }
func (s *configurationScene) patch(who, body string) error { return s.write(who, "PATCH", body) }
func (s *configurationScene) remove(who string) error      { return s.write(who, "DELETE", "") }

func (s *configurationScene) saveTo(who, body, address string) error {
	s.loaded[who] = opened{address: address}
	return s.write(who, "PUT", body)
}

func (s *configurationScene) field(path string) string {
	return strings.Trim(s.answer.Field(path), `"`)
}

func (s *configurationScene) isSaved() error {
	if s.answer.Status >= 300 {
		return fmt.Errorf("%d %s", s.answer.Status, s.answer.Body)
	}
	return nil
}

func (s *configurationScene) refusedAs(code string) error {
	if s.answer.Status < 400 {
		return fmt.Errorf("it was saved: %s", s.answer.Body)
	}
	return same("code", code, s.field("error.code"))
}

func (s *configurationScene) refusedAt(code, field string) error {
	return errors.Join(s.refusedAs(code), same("field", field, s.field("error.field")))
}

func (s *configurationScene) doesNotHold(text string) error {
	if bytes.Contains(s.answer.Body, []byte(text)) {
		return fmt.Errorf("it does: %s", s.answer.Body)
	}
	return nil
}

func (s *configurationScene) lastEvent(stream, typ, actor string) error {
	for _, e := range slices.Backward(s.server.Log.Events) {
		if e.Stream == stream {
			return errors.Join(same("type", typ, e.Type), same("actor", actor, e.Meta.Actor))
		}
	}
	return fmt.Errorf("%s has no event", stream)
}

func (s *configurationScene) anotherSnapshot() error {
	if s.server.Catalog.Current().ID == s.before {
		return errors.New("it has the same")
	}
	return nil
}

func (s *configurationScene) plannedAs(tenant, name, want string) error {
	plan, err := s.server.Catalog.Current().Resolve(catalog.Ask{Tenant: tenant, Name: name})
	return errors.Join(err, same("plan", want, rungsOf(plan)))
}

func rungsOf(plan catalog.Plan) string {
	var list []string
	for _, stage := range plan.Stages {
		for _, r := range stage.Rungs {
			list = append(list, r.Rung.Deployment)
		}
	}
	return strings.Join(list, ", ")
}

func (s *configurationScene) append(stream string, e eventstore.Event) error {
	_, err := s.server.Log.AppendAll(context.Background(), []eventstore.Append{{
		Stream: stream, Expected: eventstore.AnyVersion, Events: []eventstore.Event{e},
	}})
	return errors.Join(err, s.server.Catalog.Refresh(context.Background()))
}

func (s *configurationScene) loseChain(model string) error {
	return s.append("chain/operator/"+model, eventstore.Event{
		Type: "chain_replaced", Version: 1, At: time.Now(), Data: []byte(`{"owner":"operator","model":"` + model + `","chain":[]}`),
	})
}

func (s *configurationScene) fromTheFuture() error {
	return s.append("model/b", eventstore.Event{Type: "from_the_future", Version: 1, Data: []byte(`{"model":"b"}`)})
}

func (s *configurationScene) passedOver(typ string) error {
	if !strings.Contains(s.answer.Field("passed_over"), `"type":"`+typ+`"`) {
		return fmt.Errorf("got %s", s.answer.Body)
	}
	return nil
}

func (s *configurationScene) admit(tenant, name string) (err error) {
	s.admitted, err = s.server.Catalog.Current().Resolve(catalog.Ask{Tenant: tenant, Name: name})
	return err
}

func (s *configurationScene) exportRoundTrips() error {
	ctx := context.Background()
	state, err := live.Read(ctx, s.server.Log)
	if err != nil {
		return err
	}
	file, err := config.Load(bytes.NewReader(config.Export(state)), "export.yaml")
	if err != nil {
		return err
	}
	empty := configtest.NewLog()
	if err := config.Apply(ctx, empty, config.Diff(catalog.NewState(), file.Objects), eventstore.Meta{}, time.Now()); err != nil {
		return err
	}
	again, err := live.Read(ctx, empty)
	if err != nil {
		return err
	}
	return same("snapshot", state.Snapshot().ID, again.Snapshot().ID)
}

func (s *configurationScene) storedIsRead() error {
	if s.server.Catalog.Current().ID == s.before {
		return errors.New("the edit changed nothing")
	}
	o, err := catalog.ReadDocument(s.before, s.stored)
	if err != nil {
		return err
	}
	return same("models", "2", strconv.Itoa(len(o.Models)))
}

// store keeps what the worker publishes, and the id that it has.
func (s *configurationScene) store() error {
	a, err := s.server.Do(adminapitest.Ask{Method: "GET", Path: "/snapshot/document"})
	s.stored = a.Body
	return errors.Join(err, same("id", `"`+s.before+`"`, a.ETag), same("hash", s.before, catalog.DocumentID(a.Body)))
}

// olderSnapshot is a published document with what today's encoder would not write: white
// space, and a field that another release has.
func (s *configurationScene) olderSnapshot() (err error) {
	s.stored, err = os.ReadFile("../domain/catalog/testdata/snapshot.format1.json")
	return err
}

func (s *configurationScene) olderIsRead() error {
	id, err := os.ReadFile("../domain/catalog/testdata/snapshot.format1.id")
	if err != nil {
		return err
	}
	o, err := catalog.ReadDocument(strings.TrimSpace(string(id)), s.stored)
	if err != nil {
		return err
	}
	if catalog.NewSnapshot(o).ID == strings.TrimSpace(string(id)) {
		return errors.New("this release gives it the same id: the scenario shows nothing")
	}
	return same("tenants", "2", strconv.Itoa(len(o.Tenants)))
}

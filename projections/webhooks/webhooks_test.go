package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/billing"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/webhook"
	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/eventstore/pgtest"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// scene is a log in memory and the queue that is made of it.
type scene struct {
	t    testing.TB
	pool *pgxpool.Pool
	log  *projectiontest.Log
	now  time.Time
	read int64
}

func newScene(t testing.TB) *scene {
	return &scene{t: t, pool: projectiontest.NewPool(t), log: projectiontest.NewLog(), now: projectiontest.Start}
}

// ReadStream implements Streams over the log in memory.
func (s *scene) ReadStream(ctx context.Context, stream string, from int64, limit int) ([]eventstore.Recorded, error) {
	all, err := s.log.ReadAll(ctx, 0, 0, 1<<20)
	all = slices.DeleteFunc(all, func(r eventstore.Recorded) bool { return r.Stream != stream || r.StreamVersion < from })
	return all[:min(len(all), limit)], err
}

// say writes events to one stream and folds them, as the runner would: in a transaction
// of their own.
func (s *scene) say(stream string, events ...event.Event) {
	s.t.Helper()
	s.write(stream, events...)
	s.fold()
}

func (s *scene) write(stream string, events ...event.Event) {
	for i, e := range events {
		encoded := event.Encode(e)
		s.log.Append(eventstore.Recorded{
			Stream: stream, StreamVersion: int64(i + 1), RecordedAt: s.now, Meta: eventstore.Meta{Worker: "w1"},
			Event: eventstore.Event{Type: encoded.Type, Version: encoded.Version, At: s.now, Data: encoded.Data},
		})
	}
}

func (s *scene) fold() {
	s.t.Helper()
	page, err := s.log.ReadAll(s.t.Context(), 0, s.read, 1<<20)
	if err == nil {
		err = s.apply(page)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.read += int64(len(page))
}

func (s *scene) apply(page []eventstore.Recorded) error {
	p := Projection{Log: s, Now: func() time.Time { return s.now }}
	wanted := slices.DeleteFunc(slices.Clone(page), func(r eventstore.Recorded) bool { return !slices.Contains(p.Types(), r.Type) })
	return pgx.BeginFunc(s.t.Context(), s.pool, func(tx pgx.Tx) error { return p.Apply(s.t.Context(), tx, wanted) })
}

func (s *scene) hook(tenant, id string, events ...catalog.WebhookEvent) {
	s.t.Helper()
	s.say("hooks", catalog.WebhookDefined{Tenant: tenant, Webhook: catalog.Webhook{ID: id, URL: "https://x.example.test", Env: "S", Events: events}})
}

// queued is "tenant/webhook type about" of everything there is, in the order of the log.
func (s *scene) queued() []string {
	s.t.Helper()
	rows, err := s.pool.Query(s.t.Context(), `
		select tenant || '/' || webhook || ' ' || type || ' ' || coalesce(convert_from(body, 'utf8')::json->>'tenant', '-')
		from webhook_deliveries order by created_at, tenant, webhook, type, id`)
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

func (s *scene) hears(want ...string) {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	if diff := cmp.Diff(want, s.queued(), cmpopts.EquateEmpty()); diff != "" {
		s.t.Fatalf("(-want +queued):\n%s", diff)
	}
}

func (s *scene) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.pool.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatal(err)
	}
}

var closed = billing.BillClosed{Tenant: "acme", Period: "2026-11", Lines: 2}

// A webhook hears of what follows its definition, of what it asked for, and of nothing
// while it is switched off or once it is removed.
//
// Rules: U4.
func TestAWebhookHearsOfWhatFollows_U4(t *testing.T) {
	s := newScene(t)
	s.say("bill/acme/2026-10", closed)
	s.hears()
	s.hook("", "all")
	s.hook("", "bills", catalog.HookBillClosed)
	s.hook("acme", "own")
	s.hears()
	s.say("bill/acme/2026-11", closed)
	want := []string{"/all bill_closed acme", "/bills bill_closed acme", "acme/own bill_closed acme"}
	s.hears(want...)
	s.say("circuit/route/1", circuit.CircuitOpened{Name: circuit.Name{Kind: circuit.Route, Key: "1"}, Trips: 1},
		circuit.CircuitOpened{Name: circuit.Name{Kind: circuit.Route, Key: "1"}, Trips: 2},
		circuit.CircuitClosed{Name: circuit.Name{Kind: circuit.Route, Key: "1"}})
	want = append(want, "/all circuit_closed -", "/all circuit_opened -")
	s.hears(want...)
	s.say("alias", catalog.AliasDegraded{Tenant: "acme", Name: "fast"})
	want = append(want, "/all alias_degraded acme", "acme/own alias_degraded acme")
	s.hears(want...)

	s.say("hooks", catalog.WebhookDefined{Webhook: catalog.Webhook{ID: "all", Disabled: true}})
	s.say("alias", catalog.AliasDegraded{Tenant: "acme", Name: "best"})
	want = append(want, "acme/own alias_degraded acme")
	s.hears(want...)
	s.say("hooks", catalog.WebhookRemoved{Tenant: "acme", Webhook: "own"})
	s.say("alias", catalog.AliasDegraded{Tenant: "acme", Name: "fast"})
	s.hears(want[0], want[1], want[3], want[4], want[5])
}

// Within one batch, too, the order of the log decides who hears of what.
//
// Rules: U4.
func TestABatchIsReadInOrder_U4(t *testing.T) {
	s := newScene(t)
	s.write("bill/acme/2026-10", closed)
	s.write("hooks", catalog.WebhookDefined{Webhook: catalog.Webhook{ID: "ops"}})
	s.write("hooks", catalog.WebhookDefined{Tenant: "acme", Webhook: catalog.Webhook{ID: "own"}})
	s.write("bill/acme/2026-11", closed)
	s.write("hooks", catalog.WebhookRemoved{Webhook: "ops"}, catalog.WebhookDefined{Webhook: catalog.Webhook{ID: "new"}})
	s.write("bill/acme/2026-12", closed)
	s.fold()
	s.hears("/new bill_closed acme", "acme/own bill_closed acme", "acme/own bill_closed acme")
}

// News of an organization that are the operator's affair are not told to it.
//
// Rules: U4, Z6.
func TestWhatIsTheOperatorsAffair_U4_Z6(t *testing.T) {
	s := newScene(t)
	s.hook("", "ops")
	s.hook("acme", "own")
	err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		return Tell(t.Context(), tx, "x", s.now, webhook.News{Type: catalog.HookReconciliationDrift, Tenant: "acme"}, s.now)
	})
	if err != nil {
		t.Fatal(err)
	}
	s.hears("/ops reconciliation_drift acme")
}

// A check that found a difference is told to the operator; one that passed or did not come
// to its end is no news.
//
// Rules: U4, R7.
func TestDriftIsTold_U4_R7(t *testing.T) {
	s := newScene(t)
	s.hook("", "ops")
	s.hook("acme", "own")
	for _, result := range []reconciliation.Result{reconciliation.Passed, reconciliation.TimedOut, reconciliation.Differs} {
		s.say("reconciliation/0193e8f0-0000-7000-8000-000000000001", reconciliation.CheckCompleted{Result: result})
	}
	s.hears("/ops reconciliation_drift -")
}

// An event that is folded again, because the transaction was taken back by a crash, makes
// the same messages under the same ids; if it was not, it makes none.
//
// Rules: U4, E3.
func TestMessagesAreMadeOnce_U4_E3(t *testing.T) {
	ids := func(s *scene) (list []string) {
		rows, err := s.pool.Query(t.Context(), `select id || ' ' || convert_from(body, 'utf8') from webhook_deliveries order by id`)
		if err != nil {
			t.Fatal(err)
		}
		if list, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			t.Fatal(err)
		}
		return list
	}
	tell := func(s *scene) []eventstore.Recorded {
		s.hook("", "ops")
		s.hook("acme", "ops")
		s.say("bill/acme/2026-11", closed)
		page, _ := s.log.ReadAll(t.Context(), 0, 0, 100)
		return page
	}
	one, other := newScene(t), newScene(t)
	page := tell(one)
	tell(other)
	if diff := cmp.Diff(ids(one), ids(other)); diff != "" || len(ids(one)) != 2 {
		t.Fatalf("two folds of one log (-one +other):\n%s", diff)
	}
	before := ids(one)
	one.now = one.now.Add(time.Hour)
	if err := one.apply(page[2:]); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, ids(one)); diff != "" {
		t.Errorf("folded again (-before +after):\n%s", diff)
	}
	var m struct {
		ID   uuid.UUID          `json:"id"`
		Type string             `json:"type"`
		At   time.Time          `json:"at"`
		Data webhookBillForTest `json:"data"`
	}
	_, body, _ := cut(before[0])
	if err := json.Unmarshal([]byte(body), &m); err != nil || m.ID.String() != before[0][:36] || m.Type != "bill_closed" || !m.At.Equal(projectiontest.Start) || m.Data.Period != "2026-11" {
		t.Errorf("the message is %s, %v", body, err)
	}
}

type webhookBillForTest struct {
	Period string `json:"period"`
}

func cut(line string) (id, body string, ok bool) { return line[:36], line[37:], true }

func refusal(limit int64, resets string) request.Refusal {
	return request.Refusal{Code: "insufficient_quota", Scope: "organization", Limit: limit, Used: limit - 1, Unit: "nanousd", Resets: resets}
}

// Of a thousand refusals in a window a webhook hears once, also of those in the middle of
// a walk, whose events do not name the organization; a webhook that came later hears of
// the next.
//
// Rules: U4.
func TestExhaustionIsToldOnceAWindow_U4(t *testing.T) {
	s := newScene(t)
	s.hook("", "ops")
	s.hook("acme", "own")
	refused := func(n int, tenant string, r request.Refusal) {
		s.write("request/"+projectiontest.RequestID(n).String(), request.RequestRefused{Tenant: tenant, Refusal: r})
	}
	november, december := "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"
	for n := range 20 {
		refused(n, "acme", refusal(100, november))
	}
	s.say("request/"+projectiontest.RequestID(100).String(), projectiontest.Admitted("acme"),
		request.RequestFinalized{Outcome: request.Refused, Code: "insufficient_quota", Refusal: new(refusal(100, november))})
	want := []string{"/ops budget_exhausted acme", "acme/own budget_exhausted acme"}
	s.hears(want...)

	s.hook("acme", "late")
	refused(200, "acme", refusal(100, november))
	s.fold()
	want = append(want, "acme/late budget_exhausted acme")
	s.hears(want...)
	// A higher limit, the next window and another organization are news again; so is a
	// walk's end that was the first to be refused.
	for i, next := range []func(){
		func() { refused(201, "acme", refusal(200, november)) },
		func() { refused(202, "acme", refusal(200, december)) },
		func() {
			s.write("request/"+projectiontest.RequestID(203).String(), projectiontest.Admitted("acme"),
				request.RequestFinalized{Outcome: request.Refused, Code: "insufficient_quota", Refusal: new(refusal(7, ""))})
		},
	} {
		next()
		s.fold()
		want = append(want, "/ops budget_exhausted acme", "acme/late budget_exhausted acme", "acme/own budget_exhausted acme")
		s.hears(want...)
		if i == 2 {
			refused(204, "zeta", refusal(100, november))
			s.fold()
			s.hears(append(want, "/ops budget_exhausted zeta")...)
		}
	}
	// Requests and tokens of a day run out as money does; a minute's are a rate.
	day := refusal(50, "2026-12-01T00:00:00Z")
	day.Code, day.Unit, day.Per = "rate_limit_exceeded", "tokens", "day"
	minute := day
	minute.Limit, minute.Per, minute.Resets = 5, "minute", "2026-11-30T10:01:00Z"
	want = append(want, "/ops budget_exhausted zeta")
	refused(250, "acme", minute)
	s.fold()
	s.hears(want...)
	refused(251, "acme", day)
	refused(252, "acme", day)
	s.fold()
	want = append(want, "/ops budget_exhausted acme", "acme/late budget_exhausted acme", "acme/own budget_exhausted acme")
	s.hears(want...)
	// Other ends are no news.
	s.say("request/"+projectiontest.RequestID(300).String(), projectiontest.Admitted("acme"),
		request.RequestFinalized{Outcome: request.Completed}, request.RequestFinalized{Outcome: request.Refused, Code: "insufficient_quota"})
	s.hears(want...)
}

// Whatever happens and whatever is configured, an organization's webhook hears of its own
// organization, and of nothing that is about none.
//
// Rules: U4, Z6.
func TestAnOrganizationHearsOfItself_U4_Z6(t *testing.T) {
	s := newScene(t)
	tenants := []string{"acme", "zeta", "acm"}
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 12).Draw(rt, "events") {
			tenant := rapid.SampledFrom(tenants).Draw(rt, "tenant")
			switch rapid.IntRange(0, 5).Draw(rt, "kind") {
			case 0:
				var events []catalog.WebhookEvent
				if rapid.Bool().Draw(rt, "some") {
					// Also what validation would refuse: this is the last door.
					events = rapid.SliceOfDistinct(rapid.SampledFrom(catalog.WebhookEvents()), func(e catalog.WebhookEvent) catalog.WebhookEvent { return e }).Draw(rt, "events")
				}
				s.write("hooks", catalog.WebhookDefined{
					Tenant:  rapid.SampledFrom(append(tenants, "")).Draw(rt, "owner"),
					Webhook: catalog.Webhook{ID: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "id"), Events: events},
				})
			case 1:
				s.write("hooks", catalog.WebhookRemoved{Tenant: tenant, Webhook: "a"})
			case 2:
				s.write("bill", billing.BillClosed{Tenant: tenant, Period: "2026-11"})
			case 3:
				s.write("alias", catalog.AliasDegraded{Tenant: tenant, Name: "fast"})
			case 4:
				s.write("circuit", circuit.CircuitOpened{Name: circuit.Name{Kind: circuit.Route, Key: "1", Credential: tenant + "/own"}, Trips: 1})
			case 5:
				s.write("request/"+projectiontest.RequestID(1).String(), request.RequestRefused{
					Tenant: tenant, Refusal: refusal(rapid.Int64Range(1, 3).Draw(rt, "limit"), ""),
				})
			}
		}
		s.fold()
		var wrong int
		err := s.pool.QueryRow(t.Context(), `
			select count(*) from webhook_deliveries
			where tenant <> '' and tenant is distinct from convert_from(body, 'utf8')::json->>'tenant'
			   or tenant <> '' and type like 'circuit%'`).Scan(&wrong)
		if err != nil || wrong > 0 {
			rt.Fatalf("%d messages about others, %v", wrong, err)
		}
	})
	if len(s.queued()) == 0 {
		t.Error("nothing was queued at all")
	}
}

// What comes beyond ten thousand that wait is dead at once, to be seen; what waits for one
// webhook takes no room from another.
//
// Rules: U4.
func TestTheBacklogIsBounded_U4(t *testing.T) {
	s := newScene(t)
	s.hook("", "away")
	s.hook("", "there")
	s.exec(`insert into webhook_deliveries (id, tenant, webhook, type, body, created_at, expires_at, next_at)
		select gen_random_uuid(), '', 'away', 'ping', '{}', $1, $1, $1 from generate_series(1, $2)`, s.now, maxPending-1)
	s.say("bill", closed)
	s.say("bill", closed)
	var got string
	err := s.pool.QueryRow(t.Context(), `
		select string_agg(webhook || ' ' || state || ' ' || coalesce(last_cause, '-'), ', ' order by webhook, state desc)
		from webhook_deliveries where type = 'bill_closed'`).Scan(&got)
	if want := "away pending -, away dead backlog_full, there pending -, there pending -"; err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
}

// A changed webhook is tried at once: the change may be the repair.
func TestAChangeTriesAgain_U4(t *testing.T) {
	s := newScene(t)
	s.hook("", "ops")
	s.say("bill", closed)
	s.exec(`update webhook_deliveries set next_at = next_at + interval '1 hour'`)
	s.exec(`update webhook_endpoints set failures = 7, retry_at = 'infinity'`)
	s.hook("", "ops")
	var due bool
	err := s.pool.QueryRow(t.Context(), `
		select d.next_at <= $1 and e.failures = 0 and e.retry_at <= $1 from webhook_deliveries d join webhook_endpoints e using (tenant, webhook)`, s.now).Scan(&due)
	if err != nil || !due {
		t.Errorf("due %v, %v", due, err)
	}
}

// Pages are newest first, complete, and of one webhook; what comes between two pages moves
// nothing.
//
// Rules: U4.
func TestDeliveriesArePaged_U4(t *testing.T) {
	s := newScene(t)
	s.hook("", "ops")
	s.hook("acme", "ops")
	for n := range 23 {
		s.now = s.now.Add(time.Duration(n%3) * time.Second) // some at the same moment
		s.say("alias", catalog.AliasDegraded{Tenant: "acme", Name: fmt.Sprint(n)})
	}
	s.exec(`update webhook_deliveries set state = 'dead', last_cause = 'status', last_status = 500 where tenant = '' and id in (select id from webhook_deliveries where tenant = '' limit 5)`)
	seen, cursor := map[uuid.UUID]bool{}, ""
	var last time.Time
	for {
		page, err := List(t.Context(), s.pool, "", "ops", "", cursor, 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Deliveries {
			if seen[d.ID] || len(seen) > 0 && d.CreatedAt.After(last) {
				t.Errorf("%s twice or out of order", d.ID)
			}
			seen[d.ID], last = true, d.CreatedAt
		}
		s.say("alias", catalog.AliasDegraded{Tenant: "zeta", Name: "later"})
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(seen) != 23 {
		t.Errorf("saw %d", len(seen))
	}
	dead, err := List(t.Context(), s.pool, "", "ops", Dead, "", 0)
	if err != nil || len(dead.Deliveries) != 5 || dead.Next != "" || *dead.Deliveries[0].LastStatus != 500 || dead.Deliveries[0].NextAt != nil {
		t.Errorf("dead: %+v, %v", dead, err)
	}
	for _, bad := range []string{"x", "AAAA", "////////////////////////////////", "__________________________________________8"} {
		if _, err := List(t.Context(), s.pool, "", "ops", "", bad, 5); err != ErrCursor {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}

	one, err := One(t.Context(), s.pool, "", "ops", dead.Deliveries[0].ID)
	if err != nil || !json.Valid(one.Body) || one.State != Dead {
		t.Errorf("one: %+v, %v", one, err)
	}
	for _, other := range [][2]string{{"acme", "ops"}, {"", "other"}} {
		if _, err := One(t.Context(), s.pool, other[0], other[1], one.ID); err != ErrNotFound {
			t.Errorf("as %v: %v", other, err)
		}
		if err := Again(t.Context(), s.pool, other[0], other[1], one.ID, s.now); err != ErrNotFound {
			t.Errorf("again as %v: %v", other, err)
		}
	}
	if err := Again(t.Context(), s.pool, "", "ops", one.ID, s.now); err != nil {
		t.Fatal(err)
	}
	if one, err = One(t.Context(), s.pool, "", "ops", one.ID); err != nil || one.State != Pending || one.Attempts != 0 || one.NextAt == nil || !one.NextAt.Equal(s.now) {
		t.Errorf("again: %+v, %v", one, err)
	}
	totals, err := Count(t.Context(), s.pool)
	if err != nil || totals.Dead != 4 || totals.Pending == 0 || totals.Oldest == nil || totals.Failing != 0 {
		t.Errorf("totals: %+v, %v", totals, err)
	}
}

// A fresh database begins behind what its log holds; a runner takes it from there.
func TestTheQueueFollowsTheLog_U4(t *testing.T) {
	s := newScene(t)
	r := projections.NewRunner(s.pool, s.log, projections.Options{Poll: 5 * time.Millisecond}, Projection{Log: s, Now: func() time.Time { return projectiontest.Start }})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	defer func() { stop(); <-done }()
	s.write("hooks", catalog.WebhookDefined{Webhook: catalog.Webhook{ID: "ops"}})
	s.write("bill", closed)
	for len(s.queued()) == 0 {
		s.exec(`select pg_sleep(0.005)`)
	}
}

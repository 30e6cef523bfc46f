package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/webhook"
	"github.com/sluice-gateway/sluice/projections/projectiontest"
	queued "github.com/sluice-gateway/sluice/projections/webhooks"
)

// office is a queue, a clock that stands until it is moved, and receivers by host.
type office struct {
	t    *testing.T
	pool *pgxpool.Pool
	log  bytes.Buffer

	mu    sync.Mutex
	now   time.Time
	posts map[string][]string // host to ids, in the order of arrival
	// answers are the statuses of a host, 200 where it has none.
	answers map[string]func(id string) (status int, err error)
	hooks   map[string]catalog.Webhook
}

func newOffice(t *testing.T) *office {
	return &office{
		t: t, pool: projectiontest.NewPool(t), now: projectiontest.Start, posts: map[string][]string{},
		answers: map[string]func(string) (int, error){}, hooks: map[string]catalog.Webhook{},
	}
}

// RoundTrip is every receiver.
func (o *office) RoundTrip(r *http.Request) (*http.Response, error) {
	host, id := strings.TrimSuffix(r.URL.Hostname(), ".example.test"), r.Header.Get("Webhook-Id")
	o.mu.Lock()
	o.posts[host] = append(o.posts[host], id)
	answer := o.answers[host]
	o.mu.Unlock()
	status := 200
	if answer != nil {
		var err error
		if status, err = answer(id); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}, nil
}

func (o *office) clock() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}

func (o *office) pass(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = o.now.Add(d)
}

func (o *office) answer(host string, f func(id string) (int, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers[host] = f
}

func (o *office) posted(host string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.posts[host])
}

// worker is a deliverer of another process.
func (o *office) worker() *Deliverer {
	return New(Config{
		DB: o.pool,
		Webhook: func(tenant, id string) (catalog.Webhook, bool) {
			o.mu.Lock()
			defer o.mu.Unlock()
			w, ok := o.hooks[tenant+"/"+id]
			return w, ok
		},
		Secret: func(context.Context, string, catalog.Webhook) (secrets.Secret, error) { return secret, nil },
		Now:    o.clock, Random: func() float64 { return 0.5 }, Logger: slog.New(slog.NewTextHandler(&o.log, nil)),
		transport: o,
	})
}

// hook is a webhook whose receiver is the host of the same name.
func (o *office) hook(tenant, id string) {
	o.t.Helper()
	o.mu.Lock()
	o.hooks[tenant+"/"+id] = catalog.Webhook{ID: id, URL: "https://" + tenant + id + ".example.test/", Env: "S"}
	o.mu.Unlock()
	o.exec(`insert into webhook_endpoints (tenant, webhook, events, disabled) values ($1, $2, '{}', false)`, tenant, id)
}

func (o *office) ping(tenant, id string) uuid.UUID {
	o.t.Helper()
	message := uuid.Must(uuid.NewV7())
	if err := queued.SendPing(o.t.Context(), o.pool, tenant, id, message, o.clock()); err != nil {
		o.t.Fatal(err)
	}
	return message
}

func (o *office) one(tenant, hook string, id uuid.UUID) queued.Delivery {
	o.t.Helper()
	d, err := queued.One(o.t.Context(), o.pool, tenant, hook, id)
	if err != nil {
		o.t.Fatal(err)
	}
	return d
}

func (o *office) exec(sql string, args ...any) {
	o.t.Helper()
	if _, err := o.pool.Exec(o.t.Context(), sql, args...); err != nil {
		o.t.Fatal(err)
	}
}

// step lets a worker look once and waits for what it began.
func (o *office) step(d *Deliverer) {
	o.t.Helper()
	if err := d.look(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	d.running.Wait()
}

// A receiver that fails is tried again, later each time, under the same id, until it takes
// the message; what is shown says how far it is.
//
// Rules: U4.
func TestAMessageIsTriedUntilItIsTaken_U4(t *testing.T) {
	o := newOffice(t)
	o.hook("", "ops")
	d := o.worker()
	statuses := []int{500, 302, 429, 200}
	o.answer("ops", func(string) (int, error) { return statuses[o.posted("ops")-1], nil })
	id := o.ping("", "ops")
	began := o.clock()
	for n, status := range statuses {
		o.step(d)
		got := o.one("", "ops", id)
		if o.posted("ops") != n+1 || got.Attempts != n+1 || *got.LastStatus != status {
			t.Fatalf("after %d: %d posts, %+v", n+1, o.posted("ops"), got)
		}
		o.step(d) // not due
		if o.posted("ops") != n+1 {
			t.Fatalf("tried again at once")
		}
		if status == 200 {
			if got.State != queued.Delivered || got.NextAt != nil || got.LastFailure != nil {
				t.Errorf("taken: %+v", got)
			}
			break
		}
		// Half of a doubled wait is certain, half is drawn: 0.5 makes three quarters.
		if want := o.clock().Add(5 * time.Second << n * 3 / 4); got.State != queued.Pending || !got.NextAt.Equal(want) || got.LastFailure == nil {
			t.Errorf("after %d attempts %+v, want the next at %s", n+1, got, want)
		}
		o.pass(got.NextAt.Sub(o.clock()))
	}
	for _, got := range o.posts["ops"] {
		if got != id.String() {
			t.Errorf("posted as %s, not %s", got, id)
		}
	}
	if s := d.Stats(); s != (Stats{Delivered: 1, Failed: 3}) || o.clock().Sub(began) > time.Minute {
		t.Errorf("%+v after %s", s, o.clock().Sub(began))
	}
}

// A receiver that is never there is tried for three days and then no more; the message is
// shown as dead, and sent once more when somebody asks.
//
// Rules: U4.
func TestAMessageIsGivenUp_U4(t *testing.T) {
	o := newOffice(t)
	o.hook("acme", "own")
	d := o.worker()
	o.answer("acmeown", func(string) (int, error) { return 0, io.ErrUnexpectedEOF })
	id := o.ping("acme", "own")
	began := o.clock()
	for o.one("acme", "own", id).State == queued.Pending {
		o.step(d)
		o.pass(5 * time.Minute)
		if o.clock().Sub(began) > 2*webhook.MaxAge {
			t.Fatal("never given up")
		}
	}
	got := o.one("acme", "own", id)
	if took := o.clock().Sub(began); took > webhook.MaxAge || took < webhook.MaxAge-3*time.Hour {
		t.Errorf("given up after %s", took)
	}
	if got.State != queued.Dead || *got.LastFailure != webhook.CauseBroken || got.LastStatus != nil || got.Attempts < 40 {
		t.Errorf("dead: %+v", got)
	}
	if log := o.log.String(); !strings.Contains(log, "was not told") || !strings.Contains(log, id.String()) || strings.Contains(log, secret) {
		t.Errorf("the log says %q", log)
	}
	tried := o.posted("acmeown")
	o.pass(24 * time.Hour)
	if o.step(d); o.posted("acmeown") != tried {
		t.Error("a dead message is tried")
	}
	o.answer("acmeown", nil)
	if err := queued.Again(t.Context(), o.pool, "acme", "own", id, o.clock()); err != nil {
		t.Fatal(err)
	}
	o.step(d)
	if got := o.one("acme", "own", id); got.State != queued.Delivered || o.posts["acmeown"][tried] != id.String() {
		t.Errorf("sent again: %+v", got)
	}
}

// A webhook that failed is left alone for a while that grows, whatever comes for it
// meanwhile.
//
// Rules: U4.
func TestAFailingWebhookIsLeftAlone_U4(t *testing.T) {
	o := newOffice(t)
	o.hook("", "ops")
	d := o.worker()
	o.answer("ops", func(string) (int, error) { return 500, nil })
	for range 3 {
		o.ping("", "ops")
	}
	o.step(d) // three at once, which is one failure of the webhook
	for failures := 1; failures < 4; failures++ {
		var have int
		var until time.Time
		if err := o.pool.QueryRow(t.Context(), `select failures, retry_at from webhook_endpoints`).Scan(&have, &until); err != nil {
			t.Fatal(err)
		}
		// All that waits is due, and something new comes.
		o.exec(`update webhook_deliveries set next_at = $1`, o.clock())
		o.exec(`insert into webhook_deliveries (id, tenant, webhook, type, body, created_at, expires_at, next_at)
			values (gen_random_uuid(), '', 'ops', 'ping', '{}', $1, 'infinity', $1)`, o.clock())
		if want := o.clock().Add(5 * time.Second << (failures - 1) * 3 / 4); have != failures || !until.Equal(want) {
			t.Errorf("%d failures, left alone until %s, want %s", have, until, want)
		}
		tried := o.posted("ops")
		o.pass(until.Sub(o.clock()) - time.Microsecond)
		if o.step(d); o.posted("ops") != tried {
			t.Fatal("called while it is left alone")
		}
		o.pass(time.Microsecond)
		if o.step(d); o.posted("ops") != tried+1 {
			t.Fatalf("%d calls of one that failed", o.posted("ops")-tried)
		}
	}
}

// A worker that dies between taking a message and writing down how it ended loses
// nothing: another sends it again, under the same id, when the lease is over and not
// before.
//
// Rules: U4, E11.
func TestADeadWorkersMessageIsSentAgain_U4_E11(t *testing.T) {
	o := newOffice(t)
	o.hook("", "ops")
	id := o.ping("", "ops")
	dying, living := o.worker(), o.worker()
	taken, err := dying.take(t.Context(), false, slots)
	if err != nil || len(taken) != 1 {
		t.Fatalf("took %v, %v", taken, err)
	}
	if r := dying.post(t.Context(), taken[0], o.hooks["/ops"]); r.cause != "" {
		t.Fatal(r)
	}
	// It dies here. The receiver has the message, and the queue does not know.
	o.pass(lease - time.Microsecond)
	if o.step(living); o.posted("ops") != 1 {
		t.Fatal("sent by two at once")
	}
	o.pass(time.Microsecond)
	o.step(living)
	if diff := cmp.Diff([]string{id.String(), id.String()}, o.posts["ops"]); diff != "" {
		t.Errorf("(-want +posted):\n%s", diff)
	}
	if got := o.one("", "ops", id); got.State != queued.Delivered || got.Attempts != 2 {
		t.Errorf("%+v", got)
	}
}

// Two workers on one queue send each message once, and all of them.
//
// Rules: U4, O1.
func TestWorkersShareTheQueue_U4_O1(t *testing.T) {
	o := newOffice(t)
	want := map[string]int{}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		o.hook("", id)
		for range 40 {
			want[o.ping("", id).String()] = 1
		}
	}
	var workers sync.WaitGroup
	for range 3 {
		d := o.worker()
		workers.Go(func() {
			for totals := (queued.Totals{Pending: 1}); totals.Pending > 0; {
				if err := d.look(t.Context()); err != nil {
					t.Error(err)
					return
				}
				d.running.Wait()
				var err error
				if totals, err = queued.Count(t.Context(), o.pool); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	got := map[string]int{}
	for _, ids := range o.posts {
		for _, id := range ids {
			got[id]++
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +posted):\n%s", diff)
	}
}

// Receivers that hang take a bounded part of a worker and keep no other waiting; one that
// failed is called once at a time, however much waits for it, and gets everything when it
// is back.
//
// Rules: U4.
func TestASlowReceiverDelaysNobody_U4(t *testing.T) {
	o := newOffice(t)
	d := o.worker()
	const slow, backlog = 20, 30
	var hanging sync.WaitGroup
	release := make(chan struct{})
	for n := range slow {
		id := fmt.Sprintf("slow%d", n)
		o.hook("", id)
		// It failed before, which is how it is known to be slow.
		o.exec(`update webhook_endpoints set failures = 1 where webhook = $1`, id)
		for range backlog {
			o.ping("", id)
		}
		o.answer(id, func(string) (int, error) { hanging.Done(); <-release; return 0, context.DeadlineExceeded })
	}
	o.hook("", "quick")
	o.ping("", "quick")
	hanging.Add(failingSlots)
	if err := d.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	hanging.Wait()
	for range 3 { // whatever comes meanwhile
		if err := d.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.failing.Load(); got != failingSlots {
		t.Errorf("%d attempts hang", got)
	}
	ping := o.ping("", "quick")
	for o.one("", "quick", ping).State != queued.Delivered { // while they hang
		if err := d.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	d.running.Wait()
	for n := range slow {
		if got := o.posted(fmt.Sprintf("slow%d", n)); got > 1 {
			t.Errorf("slow%d was called %d times at once", n, got)
		}
		o.answer(fmt.Sprintf("slow%d", n), nil)
	}
	o.pass(10 * time.Second)
	totals := queued.Totals{Pending: 1}
	for looks := 0; totals.Pending > 0; looks++ {
		o.step(d)
		o.pass(10 * time.Second)
		var err error
		if totals, err = queued.Count(t.Context(), o.pool); err != nil {
			t.Fatal(err)
		}
		if looks > slow*backlog {
			t.Fatalf("%+v are left", totals)
		}
	}
	if totals.Failing != 0 {
		t.Errorf("%d count as failing", totals.Failing)
	}
}

// A webhook that works is sent a few at once, over all workers.
//
// Rules: U4.
func TestAWebhookIsNotFlooded_U4(t *testing.T) {
	o := newOffice(t)
	o.hook("", "ops")
	for range 20 {
		o.ping("", "ops")
	}
	one, other := o.worker(), o.worker()
	first, err := one.take(t.Context(), false, slots)
	if err != nil || len(first) != perWebhook {
		t.Fatalf("took %d, %v", len(first), err)
	}
	if second, err := other.take(t.Context(), false, slots); err != nil || len(second) != 0 {
		t.Errorf("another took %d more, %v", len(second), err)
	}
}

// A worker that has not heard of a webhook, or of its being switched on, gives its message
// back; nothing counts as an attempt. A webhook that is switched off is not called, and
// what waits for it is dead in the end.
//
// Rules: U4.
func TestAWebhookThatIsOffIsNotCalled_U4(t *testing.T) {
	o := newOffice(t)
	o.hook("", "ops")
	d := o.worker()
	id := o.ping("", "ops")
	hook := o.hooks["/ops"]
	delete(o.hooks, "/ops")
	o.step(d)
	if got := o.one("", "ops", id); got.State != queued.Pending || got.Attempts != 0 || o.posted("ops") != 0 {
		t.Errorf("unknown: %+v", got)
	}
	o.hooks["/ops"] = hook
	o.exec(`update webhook_endpoints set disabled = true`)
	o.pass(time.Hour)
	if o.step(d); o.posted("ops") != 0 {
		t.Error("called while switched off")
	}
	o.pass(webhook.MaxAge)
	if err := d.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := o.one("", "ops", id); got.State != queued.Dead {
		t.Errorf("after three days: %+v", got)
	}
}

// After the gateway itself was away for longer than messages are tried, each is still
// tried once.
//
// Rules: U4.
func TestALongOutageLosesNothing_U4(t *testing.T) {
	o := newOffice(t)
	o.hook("", "ops")
	id := o.ping("", "ops")
	o.pass(10 * webhook.MaxAge)
	d := o.worker()
	if err := d.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.step(d)
	if got := o.one("", "ops", id); got.State != queued.Delivered {
		t.Errorf("%+v", got)
	}
}

// What is over is cleared away by its age and beyond a number, and what waits never is.
//
// Rules: U4.
func TestWhatIsOverIsClearedAway_U4(t *testing.T) {
	o := newOffice(t)
	o.hook("", "ops")
	o.hook("", "busy")
	d := o.worker()
	row := func(n int, hook, state string, age time.Duration) {
		o.exec(`insert into webhook_deliveries (id, tenant, webhook, type, body, created_at, expires_at, next_at, state)
			select gen_random_uuid(), '', $2, 'ping', '{}', $3, 'infinity', $3, $4 from generate_series(1, $1)`, n, hook, o.clock().Add(-age), state)
	}
	row(1, "ops", "delivered", keepDelivered-time.Minute)
	row(2, "ops", "delivered", keepDelivered+time.Minute)
	row(4, "ops", "dead", keepDead-time.Minute)
	row(8, "ops", "dead", keepDead+time.Minute)
	row(16, "ops", "pending", 10*keepDead)
	row(keepMost+30, "busy", "delivered", time.Minute)
	row(40, "busy", "pending", time.Hour)
	o.exec(`insert into webhook_once select '', 'ops', n::text, $1::timestamptz + n * interval '1 hour' from generate_series(-30, 2) n`, o.clock())
	if err := d.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var kept, once string
	err := o.pool.QueryRow(t.Context(), `
		select string_agg(webhook || ' ' || state || ' ' || n, ', ' order by webhook, state) from (
			select webhook, state, count(*) n from webhook_deliveries group by webhook, state) s`).Scan(&kept)
	if want := fmt.Sprintf("busy delivered %d, busy pending 40, ops dead 4, ops delivered 1, ops pending 16", keepMost); err != nil || kept != want {
		t.Errorf("kept %s, want %s; %v", kept, want, err)
	}
	if err := o.pool.QueryRow(t.Context(), `select count(*)::text from webhook_once`).Scan(&once); err != nil || once != "27" {
		t.Errorf("%s names are remembered, %v", once, err)
	}
}

// A read model that stands still is told of once, and once when it goes on, whatever
// number of workers looks; a hiccup is not told of.
//
// Rules: U4.
func TestAStallIsToldOnce_U4(t *testing.T) {
	o := newOffice(t)
	o.hook("", "ops")
	o.hook("acme", "own")
	watch := func() {
		t.Helper()
		var workers sync.WaitGroup
		for range 2 {
			d := o.worker()
			workers.Go(func() {
				if err := d.watch(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		workers.Wait()
		if err := o.worker().watch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	told := func(want ...string) {
		t.Helper()
		rows, err := o.pool.Query(t.Context(), `select tenant || webhook || ' ' || convert_from(body, 'utf8') from webhook_deliveries order by created_at`)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range list {
			to, body, _ := strings.Cut(line, " ")
			var m struct {
				Type   string
				Tenant *string
				Data   struct {
					Projection string
					Position   int64
				}
			}
			if err := json.Unmarshal([]byte(body), &m); err != nil || m.Tenant != nil {
				t.Fatalf("%s: %v", body, err)
			}
			got = append(got, fmt.Sprintf("%s %s %s %d", to, m.Type, m.Data.Projection, m.Data.Position))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +told):\n%s", diff)
		}
	}
	o.exec(`insert into projection_stalls (name, shard, position, reason) values ('bills', 0, 42, 'it hurts'), ('requests', null, null, 'a hiccup')`)
	watch()
	o.pass(stallPatience - time.Second)
	o.exec(`delete from projection_stalls where name = 'requests'`)
	watch()
	told()
	o.pass(time.Second)
	o.exec(`update projection_stalls set reason = 'it hurts otherwise', since = now()`)
	watch()
	o.pass(time.Hour)
	watch()
	told("ops projection_stalled bills 42")
	o.exec(`delete from projection_stalls`)
	watch()
	watch()
	told("ops projection_stalled bills 42", "ops projection_recovered bills 0")
	o.pass(time.Hour)
	o.exec(`insert into projection_stalls (name, reason) values ('bills', 'again')`)
	watch()
	o.pass(stallPatience)
	watch()
	told("ops projection_stalled bills 42", "ops projection_recovered bills 0", "ops projection_stalled bills 0")
}

// A worker that is stopped gives back what it had begun, and leaves nothing running.
//
// Rules: U4, O3.
func TestAWorkerThatStopsGivesBack_U4_O3(t *testing.T) {
	o := newOffice(t)
	o.hook("", "ops")
	d := o.worker()
	ctx, stop := context.WithCancel(t.Context())
	o.answer("ops", func(string) (int, error) { stop(); return 0, context.Canceled })
	id := o.ping("", "ops")
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	running.Go(func() { d.Keep(ctx) })
	running.Wait()
	if got := o.one("", "ops", id); got.State != queued.Pending || got.Attempts != 0 {
		t.Errorf("given back: %+v", got)
	}
	o.answer("ops", nil)
	o.pass(time.Second)
	o.step(o.worker())
	if got := o.one("", "ops", id); got.State != queued.Delivered {
		t.Errorf("sent by the next: %+v", got)
	}
}

// Run sends by itself, more than one webhook may be sent at once.
//
// Rules: U4.
func TestRunSends_U4(t *testing.T) {
	o := newOffice(t)
	o.hook("", "ops")
	arrived := make(chan string, 10)
	o.answer("ops", func(id string) (int, error) { arrived <- id; return 200, nil })
	var want []string
	for range 9 {
		want = append(want, o.ping("", "ops").String())
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { o.worker().Run(ctx) })
	got := map[string]bool{}
	for range want {
		got[<-arrived] = true
	}
	stop()
	running.Wait()
	for _, id := range want {
		if !got[id] {
			t.Errorf("%s was not sent", id)
		}
	}
}

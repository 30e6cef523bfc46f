package fakeprovider_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
)

func asError[E error](err error, target *E) bool { return errors.As(err, target) }

func (c caller) statuses(model, key string, n int) []int {
	var out []int
	for range n {
		out = append(out, c.post(c.t.Context(), chatBody(model, false), key).status)
	}
	return out
}

// TestSequences_O9 gives successive calls successive outcomes.
//
// Rules: O9.
func TestSequences_O9(t *testing.T) {
	c := start(t, fakeprovider.Options{
		Default: "503,ok",
		Script: fakeprovider.Script{Rules: []fakeprovider.Rule{
			{Model: "m", Key: "k1", Outcomes: []string{"429:30"}},
			{Model: "m", Outcomes: []string{"500", "500", "ok"}},
			{Key: "cycle", Outcomes: []string{"401", "ok"}, Repeat: true},
		}},
	})
	for _, test := range []struct {
		model, key string
		want       []int
	}{
		{"fake-500,429:1,ok", "a", []int{500, 429, 200, 200}},
		{"m", "k1", []int{429, 429}},
		{"m", "k2", []int{500, 500}},
		{"m", "k1", []int{429}},
		{"m", "k3", []int{200, 200}}, // k2 and k3 share the rule's count
		{"fake-503", "cycle", []int{401, 200, 401, 200}},
		{"other", "a", []int{503, 200, 200}},
	} {
		if got := c.statuses(test.model, test.key, len(test.want)); !slices.Equal(got, test.want) {
			t.Errorf("%s with %s: %v, want %v", test.model, test.key, got, test.want)
		}
	}
	c.server.Reset()
	if got := c.statuses("fake-500,429:1,ok", "a", 2); !slices.Equal(got, []int{500, 429}) {
		t.Errorf("after a reset: %v", got)
	}
	if got := c.statuses("m", "k2", 3); !slices.Equal(got, []int{500, 500, 200}) {
		t.Errorf("after a reset: %v", got)
	}
}

// TestSequencesUnderConcurrency_O9: each outcome goes to exactly one call.
//
// Rules: O9.
func TestSequencesUnderConcurrency_O9(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() { c.call("fake-500,502,503,504,ok", false) })
	}
	calls.Wait()
	seen := map[int]int{}
	for _, call := range c.server.Ledger().Calls {
		seen[call.Status]++
	}
	if seen[500] != 1 || seen[502] != 1 || seen[503] != 1 || seen[504] != 1 || seen[200] != 16 {
		t.Errorf("statuses %v", seen)
	}
}

// TestControlPaths_O9 steers a server as another process does.
//
// Rules: O9.
func TestControlPaths_O9(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	do := func(method, path, body string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), method, c.server.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		all, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(all)
	}
	if status, body := do("POST", "/_fake/script", `{"rules":[{"model":"m","outcomes":["529"]}]}`); status != 204 {
		t.Fatalf("script: %d %s", status, body)
	}
	for _, wrong := range []string{`{"rules":[{"outcomes":["nonsense"]}]}`, `{"rules":[{"outcomes":[]}]}`, `{"rule":[]}`, `[`} {
		if status, body := do("POST", "/_fake/script", wrong); status != 400 || body == "" {
			t.Errorf("%s: %d %s", wrong, status, body)
		}
	}
	if got := c.statuses("m", "sk-secret-abcd", 2); !slices.Equal(got, []int{529, 529}) {
		t.Errorf("a refused script changed the one in force: %v", got)
	}
	_, body := do("GET", "/_fake/ledger?after=1", "")
	var ledger fakeprovider.Ledger
	if err := json.Unmarshal([]byte(body), &ledger); err != nil {
		t.Fatal(err)
	}
	if len(ledger.Calls) != 1 || ledger.Calls[0].Sequence != 2 || ledger.Total != 2 || ledger.Calls[0].KeyLast4 != "abcd" || ledger.Calls[0].IdempotencyKey != "idem-1" {
		t.Errorf("ledger %+v", ledger)
	}
	if strings.Contains(body, "secret") || strings.Contains(body, "hello") {
		t.Errorf("the ledger holds a key or a prompt: %s", body)
	}
	if _, body := do("GET", "/_fake/stats", ""); !strings.Contains(body, `"total_calls":2`) || !strings.Contains(body, `"open_calls":0`) {
		t.Errorf("stats %s", body)
	}
	if _, body := do("GET", "/_fake/help", ""); body != fakeprovider.Help() {
		t.Errorf("help %.80s", body)
	}
	if status, _ := do("POST", "/_fake/reset", ""); status != 204 || c.server.Ledger().Total != 0 {
		t.Errorf("reset: %d, %+v", status, c.server.Ledger())
	}
	if _, body := do("GET", "/v1/models/any/name", ""); !strings.Contains(body, `"id":"any/name"`) {
		t.Errorf("model %s", body)
	}
}

// TestLedgerIsBounded_O10 keeps the newest calls and counts the others.
//
// Rules: O10.
func TestLedgerIsBounded_O10(t *testing.T) {
	c := start(t, fakeprovider.Options{LedgerCalls: 4})
	c.statuses("fake-ok", "k", 6)
	ledger := c.server.Ledger()
	var kept []int64
	for _, call := range ledger.Calls {
		kept = append(kept, call.Sequence)
		if !call.Done || call.Outcome != "ok" || call.Status != 200 || call.ResponseBytes == 0 || call.RequestBytes == 0 {
			t.Errorf("call %+v", call)
		}
	}
	if !slices.Equal(kept, []int64{3, 4, 5, 6}) || ledger.Dropped != 2 || ledger.Total != 6 {
		t.Errorf("kept %v of %d, dropped %d", kept, ledger.Total, ledger.Dropped)
	}
	c.server.Reset()
	c.statuses("fake-ok", "k", 1)
	if ledger = c.server.Ledger(); ledger.Total != 1 || ledger.Dropped != 0 || ledger.Calls[0].Sequence != 7 {
		t.Errorf("after a reset: %+v", ledger)
	}
}

// TestResetDuringCall_O10: a call that ends after a reset does not come back
// into the ledger, nor into another call's entry.
//
// Rules: O10.
func TestResetDuringCall_O10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startInMemory(t, fakeprovider.Options{LedgerCalls: 2})
		ended := make(chan reply)
		go func() { ended <- c.call("fake-delay:1s+words:9", false) }()
		synctest.Wait()
		c.server.Reset()
		c.call("fake-delay:5s+words:3", false)
		<-ended
		ledger := c.server.Ledger()
		if len(ledger.Calls) != 1 || ledger.Calls[0].BilledOutputTokens != 3 || ledger.Calls[0].Sequence != 2 {
			t.Errorf("ledger %+v", ledger)
		}
	})
}

// TestBilledInFull_W13: the caller heard nothing, the bill says otherwise.
//
// Rules: W13.
func TestBilledInFull_W13(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	c.call("fake-reset+billed+words:40", false)
	if last := c.lastCall(); last.BilledOutputTokens != 40 || last.BilledInputTokens != 7 {
		t.Errorf("bill %+v", last)
	}
}

// TestTooLargeBody is refused, and is in the ledger as a call that arrived.
func TestTooLargeBody(t *testing.T) {
	c := start(t, fakeprovider.Options{MaxBodyBytes: 50})
	if r := c.call("fake-ok", false); r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", r.status)
	}
	if last := c.lastCall(); last.Outcome != "unreadable" {
		t.Errorf("ledger %+v", last)
	}
}

// TestUnparsableBody is the caller's fault.
func TestUnparsableBody(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	if r := c.post(t.Context(), `{"model":`, "k"); r.status != http.StatusBadRequest {
		t.Errorf("status %d", r.status)
	}
}

// TestCloseEndsHungCalls: every kind of waiting ends at once, and is not told
// as a caller that left. Within the bubble a wait that went on would deadlock
// or move the clock.
func TestCloseEndsHungCalls(t *testing.T) {
	models := []string{"fake-silence", "fake-headers", "fake-stall:2", "fake-delay:1h", "fake-gap:1h", "fake-trickle:1h", "fake-500+stall-body"}
	synctest.Test(t, func(t *testing.T) {
		c := startInMemory(t, fakeprovider.Options{})
		from := time.Now()
		ended := make(chan error, len(models))
		for _, model := range models {
			go func() { ended <- c.call(model, true).err }()
		}
		synctest.Wait()
		if stats := c.server.Stats(); stats.OpenCalls != int64(len(models)) || stats.OpenStreams != int64(len(models)) || stats.OpenConnections != int64(len(models)) {
			t.Errorf("open: %+v", stats)
		}
		if err := c.server.Close(); err != nil {
			t.Error(err)
		}
		for range models {
			if err := <-ended; err == nil {
				t.Error("a hung call ended well")
			}
		}
		synctest.Wait()
		for _, call := range c.server.Ledger().Calls {
			if !call.Done || call.ClientGone {
				t.Errorf("ledger %+v", call)
			}
		}
		if stats := c.server.Stats(); stats.OpenCalls != 0 || stats.OpenStreams != 0 || stats.OpenConnections != 0 {
			t.Errorf("still open: %+v", stats)
		}
		if took := time.Since(from); took != 0 {
			t.Errorf("closing took %s", took)
		}
	})
}

// TestAsHandler uses the server under somebody else's http.Server, where it
// has to notice a caller that leaves and its own closing all the same.
func TestAsHandler(t *testing.T) {
	s, err := fakeprovider.New(fakeprovider.Options{})
	if err != nil {
		t.Fatal(err)
	}
	outer := httptest.NewServer(s)
	defer outer.Close()
	post := func(ctx context.Context, model string) error {
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, outer.URL+"/v1/chat/completions", strings.NewReader(chatBody(model, false)))
		response, err := outer.Client().Do(request)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	waiting := func(n int) {
		if err := s.Await(t.Context(), func(calls []fakeprovider.Call) bool { return len(calls) == n }); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error)
	ctx, leave := context.WithCancel(t.Context())
	go func() { ended <- post(ctx, "fake-silence") }()
	waiting(1)
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := s.Await(t.Context(), func(calls []fakeprovider.Call) bool { return calls[0].Done && calls[0].ClientGone }); err != nil {
		t.Error(err)
	}
	go func() { ended <- post(t.Context(), "fake-silence") }()
	waiting(2)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a hung call ended well")
	}
	if err := post(t.Context(), "fake-ok"); err == nil {
		t.Error("a closed server answers")
	}
}

// TestAwaitEndsWithItsContext and does not hang for what never comes.
func TestAwaitEndsWithItsContext(t *testing.T) {
	c := start(t, fakeprovider.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.server.Await(ctx, func([]fakeprovider.Call) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

package e2e_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// moneyClients load the workers of the money drill.
const moneyClients = 24

// askAgainAfter is how long a client waits that was told that the gateway is not
// available.
const askAgainAfter = 20 * time.Millisecond

// moneyKey is a caller's key.
type moneyKey struct{ tenant, id, secret string }

// moneyLoad is a number of requests, each of its own kind by chance.
type moneyLoad struct {
	base      string
	keys      []moneyKey
	transport *http.Transport
	left      atomic.Int64
	clients   sync.WaitGroup

	// done counts requests that were answered or left; the others count kinds of ends.
	done, whole, refused, early, lost, unsettled atomic.Int64

	mu sync.Mutex
	// acknowledged are the requests whose answer some client holds whole, with what it
	// was told that the request cost, -1 where it was not told.
	acknowledged map[string]int64
}

func startMoneyLoad(t *testing.T, base string, keys []moneyKey, requests int64, seed uint64) *moneyLoad {
	t.Helper()
	l := &moneyLoad{
		base: base, keys: keys, acknowledged: map[string]int64{},
		transport: &http.Transport{MaxIdleConnsPerHost: moneyClients, DisableCompression: true},
	}
	l.left.Store(requests)
	for i := range moneyClients {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		l.clients.Go(func() {
			for l.left.Add(-1) >= 0 {
				if l.one(random) {
					l.done.Add(1)
					continue
				}
				// The store is away: as a client that obeys Retry-After would.
				l.left.Add(1)
				<-time.After(askAgainAfter)
			}
		})
	}
	t.Cleanup(l.transport.CloseIdleConnections)
	return l
}

// one request by chance: who, which model, streamed or not, under an idempotency key or
// not, left early or not, sent twice or not. It is false when the gateway was not there.
func (l *moneyLoad) one(random *rand.Rand) bool {
	client := harness.Client{Base: l.base, Key: l.keys[random.IntN(len(l.keys))].secret, Transport: l.transport}
	model, streamOnly := moneyModel(random)
	stream := streamOnly || random.IntN(2) == 0
	body := harness.ChatBody(model, prompt(1+random.IntN(60), random.IntN(40) == 0), map[string]any{"stream": stream})
	var headers []string
	if random.IntN(8) == 0 {
		headers = []string{"Idempotency-Key", fmt.Sprint(random.Uint64())}
	}
	switch {
	case random.IntN(8) == 0:
		l.leave(client, body, time.Duration(random.IntN(60))*time.Millisecond, headers)
	case headers != nil && random.IntN(2) == 0:
		// Both at once: one is served, the other is told so or gets the same answer.
		var twin sync.WaitGroup
		twin.Go(func() { l.ask(client, body, headers) })
		there := l.ask(client, body, headers)
		twin.Wait()
		return there
	default:
		return l.ask(client, body, headers)
	}
	return true
}

func moneyModel(random *rand.Rand) (slug string, streamOnly bool) {
	all := 0
	for _, m := range moneyModels {
		all += m.weight
	}
	n := random.IntN(all)
	for _, m := range moneyModels {
		if n -= m.weight; n < 0 {
			return m.Slug, m.streamOnly
		}
	}
	return "", false
}

func (l *moneyLoad) ask(client harness.Client, body string, headers []string) (there bool) {
	reply, err := client.Try("POST", harness.ChatPath, body, headers...)
	switch {
	case err != nil:
		l.lost.Add(1)
		return false
	case reply.IsWhole():
		l.whole.Add(1)
		l.acknowledge(reply)
	case reply.Status == http.StatusTooManyRequests:
		l.refused.Add(1)
	case reply.Get("error.code").String() == "gateway_unavailable":
		l.unsettled.Add(1)
		return false
	}
	return true
}

func (l *moneyLoad) acknowledge(reply harness.Reply) {
	cost := int64(-1)
	if said := reply.Header.Get("X-Sluice-Cost-Nanousd"); said != "" {
		_, _ = fmt.Sscan(said, &cost) // what is no number stays -1 and is no amount
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged[reply.ID()] = cost
}

// leave asks and hangs up after a while, wherever the answer is then.
func (l *moneyLoad) leave(client harness.Client, body string, after time.Duration, headers []string) {
	ctx, cancel := context.WithTimeout(context.Background(), after)
	defer cancel()
	response, err := client.Open(ctx, "POST", harness.ChatPath, strings.NewReader(body), headers...)
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	if err != nil {
		l.early.Add(1)
	}
}

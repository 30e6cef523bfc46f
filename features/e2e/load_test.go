package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// load is a steady stream of small requests from a fixed number of clients.
type load struct {
	// whole counts answers that came to their end, other everything else.
	whole, other atomic.Int64

	stop    chan struct{}
	clients sync.WaitGroup

	mu sync.Mutex
	// acknowledged are the requests whose answer some client holds whole.
	acknowledged map[string]bool
	// told are those whose failure some client was told.
	told map[string]bool
	// ends count what became of all but the whole answers.
	ends map[string]int
}

// loadModels are asked for in turn, by chance.
var loadModels = map[string][]string{
	"answers":    {"b/fake-words:3+delay:10ms"},
	"streams":    {"b/fake-words:4+delay:10ms+gap:10ms"},
	"fails-over": {"a/fake-500", "b/fake-words:3+delay:10ms"},
	"breaks":     {"a/fake-cut:2:rst"},
}

func startLoad(t *testing.T, client harness.Client, clients int, seed uint64) *load {
	t.Helper()
	l := &load{stop: make(chan struct{}), acknowledged: map[string]bool{}, told: map[string]bool{}, ends: map[string]int{}}
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	client.Transport = transport
	for i := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		l.clients.Go(func() { l.run(client, random) })
	}
	t.Cleanup(transport.CloseIdleConnections)
	return l
}

func (l *load) run(client harness.Client, random *rand.Rand) {
	models := []string{"answers", "streams", "streams", "fails-over", "breaks"}
	for {
		select {
		case <-l.stop:
			return
		default:
		}
		body := harness.ChatBody(models[random.IntN(len(models))], "hello", map[string]any{"stream": random.IntN(2) == 0})
		var headers []string
		if random.IntN(4) == 0 {
			headers = []string{"Idempotency-Key", fmt.Sprint(random.Uint64())}
		}
		l.note(client.Try("POST", harness.ChatPath, body, headers...))
	}
}

func (l *load) note(reply harness.Reply, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && reply.IsWhole() {
		l.acknowledged[reply.ID()] = true
		l.whole.Add(1)
		return
	}
	l.other.Add(1)
	end := "connection lost"
	switch {
	case err != nil:
	case reply.Status == http.StatusOK:
		end = "stream ended with an error"
	default:
		code := reply.Get("error.code").String()
		end = fmt.Sprintf("%d %s", reply.Status, code)
		// The other two are said without an event: there is nowhere to write one, or
		// another request has the key.
		if code != "gateway_unavailable" && code != "idempotency_replay_unavailable" {
			l.told[reply.ID()] = true
		}
	}
	l.ends[end]++
}

// end lets every client finish its request and returns when all have.
func (l *load) end() {
	close(l.stop)
	l.clients.Wait()
}

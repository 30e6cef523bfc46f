package fakeprovider

import (
	"context"
	"sync"
	"time"
)

// Call is what the provider knows of one call that arrived.
type Call struct {
	Sequence int64     `json:"sequence"` // from 1, never used twice by a server
	At       time.Time `json:"at"`
	Path     string    `json:"path"`
	Model    string    `json:"model"`
	// KeyLast4 are the last four characters of the key, never more of it.
	KeyLast4       string `json:"key_last4"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	Stream         bool   `json:"stream"`
	RequestBytes   int64  `json:"request_bytes"`
	ResponseBytes  int64  `json:"response_bytes"` // of the body, before the transport's own
	Outcome        string `json:"outcome"`        // as written in the model name or the script
	Status         int    `json:"status"`         // 0: no status line was sent
	// ClientGone says that the caller left before the server had done what
	// the outcome says; a silence always ends this way.
	ClientGone bool `json:"client_gone"`
	Done       bool `json:"done"`
	// What the provider would bill, in tokens: nothing for a refusal, the
	// prompt and what was delivered of a broken answer, else all.
	BilledInputTokens   int `json:"billed_input_tokens"`
	BilledCachedTokens  int `json:"billed_cached_tokens"`
	BilledWrittenTokens int `json:"billed_written_tokens,omitempty"`
	BilledOutputTokens  int `json:"billed_output_tokens"`
}

// DefaultLedgerCalls is how many calls a ledger keeps: some 20 MB, enough for
// a drill of several minutes. Older calls fall out and are counted.
const DefaultLedgerCalls = 1 << 16

// Ledger is a copy of a server's calls, oldest first.
type Ledger struct {
	Calls []Call `json:"calls"`
	// Dropped counts calls that fell out of the bounded ledger since the last
	// reset: with it above zero a comparison call by call proves nothing.
	Dropped int64 `json:"dropped"`
	// Total counts all calls since the last reset, dropped ones included.
	Total int64 `json:"total"`
}

// ledger keeps the newest calls in a ring.
type ledger struct {
	limit int64

	mu      sync.Mutex
	ring    []Call
	base    int64 // sequence of the last call before the last reset
	last    int64
	changed chan struct{} // made by a waiter, closed by the next change
}

func newLedger(limit int) *ledger {
	if limit <= 0 {
		limit = DefaultLedgerCalls
	}
	return &ledger{limit: int64(limit)}
}

// open writes a call that arrived and returns its number.
func (l *ledger) open(call Call) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	call.Sequence = l.last
	if slot := l.slot(call.Sequence); slot < int64(len(l.ring)) {
		l.ring[slot] = call
	} else {
		l.ring = append(l.ring, call)
	}
	l.signal()
	return call.Sequence
}

// update changes a call, unless it fell out or was reset away meanwhile.
func (l *ledger) update(sequence int64, change func(*Call)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sequence <= l.base || sequence <= l.last-l.limit {
		return
	}
	change(&l.ring[l.slot(sequence)])
	l.signal()
}

func (l *ledger) slot(sequence int64) int64 { return (sequence - l.base - 1) % l.limit }

func (l *ledger) signal() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring, l.base = nil, l.last
	l.signal()
}

// snapshot copies the calls after a sequence number, at most limit (0: all).
func (l *ledger) snapshot(after int64, limit int) Ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := max(l.base, l.last-l.limit) + 1
	out := Ledger{Total: l.last - l.base, Dropped: oldest - l.base - 1, Calls: []Call{}}
	for sequence := max(oldest, after+1); sequence <= l.last; sequence++ {
		if limit > 0 && len(out.Calls) == limit {
			break
		}
		out.Calls = append(out.Calls, l.ring[l.slot(sequence)])
	}
	return out
}

// await returns when the condition holds for the calls kept.
func (l *ledger) await(ctx context.Context, holds func([]Call) bool) error {
	for {
		l.mu.Lock()
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		if holds(l.snapshot(0, 0).Calls) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

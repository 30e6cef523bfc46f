package gateway

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/sluice-gateway/sluice/domain/neutral"
)

const (
	// maxIssuers bounds how many seals are remembered, some hundred bytes each. A turn
	// makes one or a few.
	maxIssuers = 32 << 10
	// issuerKnownFor is longer than an agent's working day; a conversation that comes
	// back later finds its route by its order alone.
	issuerKnownFor = 24 * time.Hour
)

// issuers remembers which deployment sealed a piece of reasoning, for the caller who
// was given it (K4). It is a memory of one process: forgetting costs an attempt.
type issuers struct {
	now func() time.Time

	mu    sync.Mutex
	known map[sealMark]*list.Element
	// noted has the longest unused at its front.
	noted *list.List
}

// sealMark is a seal and its caller, in a form that gives neither away.
type sealMark [sha256.Size]byte

type issued struct {
	mark       sealMark
	deployment string
	until      time.Time
}

func newIssuers(now func() time.Time) *issuers {
	return &issuers{now: now, known: map[sealMark]*list.Element{}, noted: list.New()}
}

// marks are what a seal is known by again. A provider may encrypt the same reasoning
// anew in each event that carries it, and clients send back the one or the other; its
// id stays.
func marks(caller string, seal neutral.OpaqueReasoning) []sealMark {
	var list []sealMark
	for kind, text := range [...]string{seal.ID, seal.Signature, seal.Encrypted, seal.Redacted} {
		if text != "" {
			list = append(list, sha256.Sum256([]byte(caller+"\x00"+string(rune('0'+kind))+text)))
		}
	}
	return list
}

// note remembers who sealed.
func (s *issuers) note(caller string, seal neutral.OpaqueReasoning, deployment string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, mark := range marks(caller, seal) {
		if at := s.known[mark]; at != nil {
			s.forget(at)
		}
		s.known[mark] = s.noted.PushBack(&issued{mark, deployment, s.now().Add(issuerKnownFor)})
	}
	for s.noted.Len() > maxIssuers {
		s.forget(s.noted.Front())
	}
}

// of is the deployment that sealed, "" when that is not known.
func (s *issuers) of(caller string, seal neutral.OpaqueReasoning) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, mark := range marks(caller, seal) {
		at := s.known[mark]
		if at == nil {
			continue
		}
		if i := at.Value.(*issued); s.now().Before(i.until) {
			return i.deployment
		}
		s.forget(at)
	}
	return ""
}

func (s *issuers) forget(at *list.Element) {
	delete(s.known, s.noted.Remove(at).(*issued).mark)
}

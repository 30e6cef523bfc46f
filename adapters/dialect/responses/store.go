package responses

import (
	"container/list"
	"net/http"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
)

// The bounds of the store. It is a convenience of one process: whoever is told that a
// response is gone sends the conversation, which all clients can.
const (
	// maxStored is some hundred conversations of the usual length.
	maxStored = 4096
	// maxStoredBytes bounds the memory of all organizations together.
	maxStoredBytes = 64 << 20
	// storedFor is a working day and then some, since the response was last used.
	storedFor = 12 * time.Hour
	// itemBytes is about what it takes to find one item by its id.
	itemBytes = 256
	// maxTurns bounds how long a conversation of stored responses may become.
	maxTurns = 1024
)

// Owner is whose a stored response is. Another key of the same organization is
// another owner: a conversation is its caller's (K6).
type Owner struct {
	Tenant string
	Key    string
}

type storeKey struct {
	owner Owner
	id    string
}

// stored is one turn of a conversation.
type stored struct {
	key storeKey
	// previous is the id of the turn before, empty for the first.
	previous string
	// input are the items of this turn alone, without the brackets of their list.
	input []byte
	// response is the response object as the caller got it, items its items' ids.
	response []byte
	items    []string
	until    time.Time
}

func (s *stored) bytes() int { return len(s.input) + len(s.response) + len(s.items)*itemBytes }

// Store keeps responses for callers who continue or read them (K6). It is bounded, in
// memory, and safe for concurrent use; what it does not have any more was not lost by
// anybody but has to be sent again.
type Store struct {
	now func() time.Time

	mu    sync.Mutex
	known map[storeKey]*list.Element
	// items are the turns by their output items' ids.
	items map[storeKey]*list.Element
	// used has the longest unused at its front.
	used  *list.List
	bytes int
}

// NewStore is an empty store.
func NewStore(now func() time.Time) *Store {
	return &Store{now: now, known: map[storeKey]*list.Element{}, items: map[storeKey]*list.Element{}, used: list.New()}
}

// Get is the response object that an owner was given. The error is a 404.
func (s *Store) Get(owner Owner, id string) ([]byte, *apierror.Error) {
	if s == nil {
		return nil, notStored()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if turn := s.find(storeKey{owner, id}); turn != nil {
		return turn.response, nil
	}
	return nil, notStored()
}

// Delete forgets a response and gives the reply that says so. The error is a 404.
func (s *Store) Delete(owner Owner, id string) ([]byte, *apierror.Error) {
	if s == nil {
		return nil, notStored()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := storeKey{owner, id}
	if s.find(key) == nil {
		return nil, notStored()
	}
	s.remove(s.known[key])
	o := object{b: []byte("{")}
	o.text("id", id)
	o.text("object", "response")
	o.flag("deleted", true)
	o.close('}')
	return o.b, nil
}

const resend = "The response is not stored here: it is unknown, expired or was never stored. Send the whole conversation in input, without previous_response_id."

func notStored() *apierror.Error {
	e := apierror.New(apierror.InvalidRequest)
	e.Status, e.Message, e.Param = http.StatusNotFound, resend, "response_id"
	return e
}

// find is a turn that is still kept. The caller holds the lock.
func (s *Store) find(key storeKey) *stored {
	at := s.known[key]
	if at == nil {
		return nil
	}
	turn := at.Value.(*stored)
	if !s.now().Before(turn.until) {
		s.remove(at)
		return nil
	}
	return turn
}

func (s *Store) remove(at *list.Element) {
	turn := s.used.Remove(at).(*stored)
	delete(s.known, turn.key)
	for _, id := range turn.items {
		if key := (storeKey{turn.key.owner, id}); s.items[key] == at {
			delete(s.items, key)
		}
	}
	s.bytes -= turn.bytes()
}

// put keeps a turn. What alone would fill a good part of the store is not kept.
func (s *Store) put(turn *stored) {
	turn.items = outputIDs(turn.response)
	if turn.bytes() > maxStoredBytes/8 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.known[turn.key]; at != nil {
		s.remove(at)
	}
	turn.until = s.now().Add(storedFor)
	at := s.used.PushBack(turn)
	s.known[turn.key] = at
	for _, id := range turn.items {
		s.items[storeKey{turn.key.owner, id}] = at
	}
	s.bytes += turn.bytes()
	for s.used.Len() > maxStored || s.bytes > maxStoredBytes {
		s.remove(s.used.Front())
	}
}

// conversation are the turns up to a response, oldest first, or nil when one of them
// is gone. Their use keeps them together: a conversation without its beginning is
// none.
func (s *Store) conversation(owner Owner, id string) []*stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	var turns []*stored
	for id != "" {
		key := storeKey{owner, id}
		turn := s.find(key)
		if turn == nil || len(turns) >= maxTurns {
			return nil
		}
		turns = append(turns, turn)
		id = turn.previous
	}
	until := s.now().Add(storedFor)
	for i, j := 0, len(turns)-1; i < j; i, j = i+1, j-1 {
		turns[i], turns[j] = turns[j], turns[i]
	}
	for _, turn := range turns {
		// Under the lock alone: what others read of a turn never changes.
		turn.until = until
		s.used.MoveToBack(s.known[turn.key])
	}
	return turns
}

// resume writes a stored conversation into a body that continues it, and says how
// many items it has.
func (in Inbound) resume(body []byte, previous string) ([]byte, int, error) {
	gone := &dialect.InvalidError{Message: resend, Param: "previous_response_id", Status: http.StatusNotFound}
	if in.Store == nil {
		return nil, 0, gone
	}
	turns := in.Store.conversation(in.Owner, previous)
	if turns == nil {
		return nil, 0, gone
	}
	var items []byte
	count := 0
	join := func(item []byte) {
		if len(items) > 0 {
			items = append(items, ',')
		}
		items = append(items, item...)
		count++
	}
	for _, turn := range turns {
		gjson.Parse("[" + string(turn.input) + "]").ForEach(func(_, v gjson.Result) bool {
			join([]byte(v.Raw))
			return true
		})
		gjson.GetBytes(turn.response, "output").ForEach(func(_, v gjson.Result) bool {
			if item := asInput(v); item != nil {
				join(item)
			}
			return true
		})
	}
	doc, ok := rawjson.Parse(body)
	if !ok {
		return nil, 0, errNotResponses
	}
	return withItems(body, doc, items), count, nil
}

// withItems puts items before a body's own input and takes previous_response_id away.
func withItems(body []byte, doc gjson.Result, items []byte) []byte {
	all := append([]byte("["), items...)
	if own := inputItems(doc.Get("input")); len(own) > 0 {
		if len(items) > 0 {
			all = append(all, ',')
		}
		all = append(all, own...)
	}
	all = append(all, ']')
	var edits []rawjson.Edit
	cut := rawjson.Remover{Doc: body}
	hasInput := false
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "previous_response_id":
			edits = append(edits, cut.Cut(key, v))
			return true
		case "input":
			hasInput = true
			edits = append(edits, rawjson.Replace(v, all))
		}
		cut.Stay(v)
		return true
	})
	if !hasInput {
		edits = append(edits, rawjson.Insert(body, doc, append([]byte(`"input":`), all...)))
	}
	return rawjson.Splice(nil, body, edits)
}

// inputItems is an input as the inside of a list.
func inputItems(v gjson.Result) []byte {
	switch {
	case v.Type == gjson.String:
		return append(append([]byte(`{"role":"user","content":`), v.Raw...), '}')
	case v.IsArray():
		return []byte(v.Raw[1 : len(v.Raw)-1])
	default:
		return nil
	}
}

// asInput is an output item as a later turn sends it, nil when that cannot be. Ids
// name what a provider has stored and would be looked for there; reasoning without its
// seal is nothing to anybody.
func asInput(item gjson.Result) []byte {
	keepID := false
	switch item.Get("type").Str {
	case "reasoning":
		if item.Get("encrypted_content").Str == "" {
			return nil
		}
		keepID = true
	case "message", "function_call", "custom_tool_call":
	default:
		keepID = true
	}
	raw := []byte(item.Raw)
	var edits []rawjson.Edit
	cut := rawjson.Remover{Doc: raw}
	gjson.ParseBytes(raw).ForEach(func(key, v gjson.Result) bool {
		if key.Str == "status" || (key.Str == "id" && !keepID) {
			edits = append(edits, cut.Cut(key, v))
		} else {
			cut.Stay(v)
		}
		return true
	})
	return rawjson.Splice(nil, raw, edits)
}

// save keeps a response that has ended well, unless its caller asked for it not to be.
func (in Inbound) save(req *dialect.Request, response []byte) {
	doc, ok := rawjson.Parse(req.Raw)
	id := gjson.GetBytes(response, "id").String()
	if in.Store == nil || !ok || id == "" || doc.Get("store").Type == gjson.False {
		return
	}
	var own []byte
	if input := doc.Get("input"); input.IsArray() {
		i := 0
		input.ForEach(func(_, v gjson.Result) bool {
			if i++; i > req.Continues.Items {
				if len(own) > 0 {
					own = append(own, ',')
				}
				own = append(own, v.Raw...)
			}
			return true
		})
	} else {
		own = inputItems(input)
	}
	in.Store.put(&stored{
		key: storeKey{in.Owner, id}, previous: req.Continues.ResponseID,
		input: own, response: append([]byte(nil), response...),
	})
}

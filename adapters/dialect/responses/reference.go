package responses

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
)

// itemReference is an item of an input that names another by its id: one of an answer
// that the caller believes to be stored.
const itemReference = "item_reference"

// outputIDs are the ids of a response's items.
func outputIDs(response []byte) (ids []string) {
	gjson.GetBytes(response, "output").ForEach(func(_, item gjson.Result) bool {
		if id := item.Get("id").Str; id != "" {
			ids = append(ids, id)
		}
		return true
	})
	return ids
}

// item is an output item that an owner was given, as a later turn sends it, nil when
// it is nothing to anybody. ok says whether it is kept here.
func (s *Store) item(owner Owner, id string) (raw []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.items[storeKey{owner, id}]
	if at == nil {
		return nil, false
	}
	turn := s.find(at.Value.(*stored).key)
	if turn == nil {
		return nil, false
	}
	gjson.GetBytes(turn.response, "output").ForEach(func(_, item gjson.Result) bool {
		if item.Get("id").Str == id {
			raw, ok = asInput(item), true
		}
		return !ok
	})
	return raw, ok
}

// writeOut puts kept items in the place of references to them. The id is ours, or one
// provider's: to any other destination a reference says nothing, and it would have to
// be skipped (P5). What is not kept here stays: its provider may have it.
func (in Inbound) writeOut(body []byte) []byte {
	if in.Store == nil || !bytes.Contains(body, []byte(itemReference)) {
		return body
	}
	doc, ok := rawjson.Parse(body)
	input := doc.Get("input")
	if !ok || !input.IsArray() {
		return body
	}
	var edits []rawjson.Edit
	cut := rawjson.Remover{Doc: body}
	input.ForEach(func(_, v gjson.Result) bool {
		item, kept := []byte(nil), false
		if v.Get("type").Str == itemReference {
			item, kept = in.Store.item(in.Owner, v.Get("id").Str)
		}
		switch {
		case kept && item == nil:
			edits = append(edits, cut.Cut(v, v))
			return true
		case kept:
			edits = append(edits, rawjson.Replace(v, item))
		}
		cut.Stay(v)
		return true
	})
	if len(edits) == 0 {
		return body
	}
	return rawjson.Splice(nil, body, edits)
}

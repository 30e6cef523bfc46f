package responses

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/dialecttest"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

var alice = Owner{Tenant: "acme", Key: "alice"}

// shelf is a store with a clock of its own.
type shelf struct {
	*Store
	at time.Time
}

func newShelf() *shelf {
	s := &shelf{at: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	s.Store = NewStore(func() time.Time { return s.at })
	return s
}

func (s *shelf) in(o Owner) Inbound { return Inbound{Store: s.Store, Owner: o} }

// ask runs one whole turn and gives the response's id.
func (s *shelf) ask(t testing.TB, o Owner, body, answer, requestID string) string {
	t.Helper()
	in := s.in(o)
	req, err := in.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	out, err := in.Whole(req, &neutral.Answer{
		Dialect: neutral.Chat, Stop: neutral.StopEnd, Output: []neutral.Part{{Kind: neutral.TextPart, Text: answer}},
	}, dialect.Meta{RequestID: requestID, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	return gjson.GetBytes(out, "id").Str
}

// A conversation that goes on from a stored response is the whole conversation, for
// whatever destination, and none of ours is sent there by name.
//
// Rules: K6.
func TestAStoredConversationIsWrittenOut_K6(t *testing.T) {
	s := newShelf()
	first := s.ask(t, alice, `{"model":"m","input":"one"}`, "ONE", "1")
	second := s.ask(t, alice, `{"model":"m","input":[{"role":"user","content":"two"}],"previous_response_id":"`+first+`"}`, "TWO", "2")
	req, err := s.in(alice).Parse([]byte(`{"previous_response_id":"` + second + `","model":"m","input":"three","instructions":"new"}`))
	if err != nil {
		t.Fatal(err)
	}
	dialecttest.SameJSON(t, `{"model":"m","instructions":"new","input":[
	  {"role":"user","content":"one"},
	  {"type":"message","role":"assistant","content":[{"type":"output_text","text":"ONE","annotations":[],"logprobs":[]}]},
	  {"role":"user","content":"two"},
	  {"type":"message","role":"assistant","content":[{"type":"output_text","text":"TWO","annotations":[],"logprobs":[]}]},
	  {"role":"user","content":"three"}]}`, string(req.Raw))
	if req.Continues != (dialect.Continues{ResponseID: second, Items: 4}) || req.Parts.Messages != 5 {
		t.Errorf("continues %+v with %d messages", req.Continues, req.Parts.Messages)
	}
	// What the caller reads names what it continued.
	body, gone := s.Get(alice, second)
	if gone != nil || gjson.GetBytes(body, "previous_response_id").Str != first || gjson.GetBytes(body, "id").Str != second {
		t.Errorf("%s, %v", body, gone)
	}
	third := s.ask(t, alice, string(`{"model":"m","input":"three","previous_response_id":"`+second+`"}`), "THREE", "3")
	if turns := s.conversation(alice, third); len(turns) != 3 || string(turns[2].input) != `{"role":"user","content":"three"}` {
		t.Errorf("a turn keeps more than its own input: %d turns", len(turns))
	}
}

// Rules: K4, K6.
func TestWhatALaterTurnSends_K4_K6(t *testing.T) {
	for in, want := range map[string]string{
		`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[]}`:                    `{"type":"message","role":"assistant","content":[]}`,
		`{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":"{}","status":"completed"}`:     `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`,
		`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}`:                                `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}`,
		`{"id":"rs_1","type":"reasoning","summary":[]}`:                                                           ``,
		`{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"\u00e9"}}`: `{"id":"ws_1","type":"web_search_call","action":{"type":"search","query":"\u00e9"}}`,
	} {
		if got := string(asInput(gjson.Parse(in))); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

// Rules: K6.
func TestWhatIsNotStoredIsSaidClearly_K6(t *testing.T) {
	s := newShelf()
	id := s.ask(t, alice, `{"model":"m","input":"one"}`, "ONE", "1")
	unkept := s.ask(t, alice, `{"model":"m","input":"one","store":false}`, "ONE", "2")
	follows := s.ask(t, alice, `{"model":"m","input":"two","previous_response_id":"`+id+`"}`, "TWO", "3")

	missing := func(name string, o Owner, id string) {
		t.Helper()
		_, err := s.in(o).Parse([]byte(`{"model":"m","input":"x","previous_response_id":"` + id + `"}`))
		inv, ok := errors.AsType[*dialect.InvalidError](err)
		if !ok || inv.Status != http.StatusNotFound || inv.Param != "previous_response_id" || !strings.Contains(inv.Message, "Send the whole conversation") {
			t.Errorf("%s: continued: %v", name, err)
		}
	}
	unread := func(name string, o Owner, id string) {
		t.Helper()
		for _, act := range []func(Owner, string) ([]byte, *apierror.Error){s.Get, s.Delete} {
			if _, err := act(o, id); err == nil || err.HTTPStatus() != http.StatusNotFound || err.Retryable {
				t.Errorf("%s: %+v", name, err)
			}
		}
	}
	for _, o := range []Owner{{"acme", "bob"}, {"other", "alice"}} {
		missing("another owner", o, id)
		unread("another owner", o, id)
	}
	missing("store: false", alice, unkept)
	unread("store: false", alice, unkept)
	missing("unknown", alice, "resp_nope")
	unread("unknown", alice, "resp_nope")

	body, gone := s.Delete(alice, id)
	if gone != nil || string(body) != `{"id":"`+id+`","object":"response","deleted":true}` {
		t.Errorf("deleted: %s, %v", body, gone)
	}
	missing("deleted", alice, id)
	unread("deleted", alice, id)
	missing("its beginning is gone", alice, follows)

	fresh := s.ask(t, alice, `{"model":"m","input":"one"}`, "ONE", "4")
	s.at = s.at.Add(storedFor)
	missing("expired", alice, fresh)
	unread("expired", alice, fresh)

	if _, err := (*Store)(nil).Get(alice, id); err == nil || err.HTTPStatus() != http.StatusNotFound {
		t.Errorf("no retention: %v", err)
	}
	if _, err := (Inbound{}).Parse([]byte(`{"model":"m","input":"x","previous_response_id":"` + id + `"}`)); err == nil {
		t.Error("no retention: continued")
	}
}

// Use keeps a conversation: all of its turns, or it would lose its beginning first.
//
// Rules: K6.
func TestUseKeepsAConversation_K6(t *testing.T) {
	s := newShelf()
	first := s.ask(t, alice, `{"model":"m","input":"one"}`, "ONE", "1")
	s.at = s.at.Add(storedFor - time.Minute)
	second := s.ask(t, alice, `{"model":"m","input":"two","previous_response_id":"`+first+`"}`, "TWO", "2")
	s.at = s.at.Add(2 * time.Minute)
	if turns := s.conversation(alice, second); len(turns) != 2 {
		t.Errorf("%d turns are left", len(turns))
	}
}

// Rules: K6, Z5.
func TestTheStoreIsBounded_K6_Z5(t *testing.T) {
	s := newShelf()
	for n := range maxStored + 10 {
		s.put(&stored{key: storeKey{alice, itoa(n)}, response: []byte(`{}`)})
	}
	if s.used.Len() != maxStored || len(s.known) != maxStored {
		t.Errorf("%d responses are kept", s.used.Len())
	}
	if _, gone := s.Get(alice, "9"); gone == nil {
		t.Error("the oldest is still there")
	}
	big := strings.Repeat("x", maxStoredBytes/16)
	for n := range 20 {
		s.put(&stored{key: storeKey{alice, fmt.Sprint("big", n)}, response: []byte(big)})
	}
	if s.bytes > maxStoredBytes || s.bytes < maxStoredBytes/2 {
		t.Errorf("%d bytes are kept", s.bytes)
	}
	before := s.bytes
	s.put(&stored{key: storeKey{alice, "huge"}, response: []byte(strings.Repeat("x", maxStoredBytes/2))})
	s.put(&stored{key: storeKey{alice, "big19"}, response: []byte(big)})
	if s.bytes != before {
		t.Errorf("%d bytes before, %d after", before, s.bytes)
	}
}

// A stream is stored at its end and not before: what broke cannot be continued.
//
// Rules: K6.
func TestStreamsAreStoredWhenTheyEnd_K6(t *testing.T) {
	s := newShelf()
	in := s.in(alice)
	req, err := in.Parse([]byte(`{"model":"requested/name","input":"hi","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	enc := in.NewStream(req, meta)
	dec := Outbound{}.NewStream(req, strings.NewReader(framed(created, added, hello, strings.Replace(completed, `"output":[]`, `"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]}]`, 1))))
	var out []byte
	for {
		var c neutral.Chunk
		if dec.Next(&c) != nil {
			break
		}
		if out, err = enc.Encode(out, &c); err != nil {
			t.Fatal(err)
		}
	}
	if _, gone := s.Get(alice, "r"); gone == nil {
		t.Error("stored before its end")
	}
	enc.End(out)
	body, gone := s.Get(alice, "r")
	if gone != nil || gjson.GetBytes(body, "model").Str != servedAs {
		t.Fatalf("%s, %v", body, gone)
	}
	own := in.NewStream(req, meta)
	_, _ = own.Encode(nil, &neutral.Chunk{Dialect: neutral.Chat, Events: turn[4]})
	own.End(nil)
	if body, gone := s.Get(alice, "resp_019acf484c0070008000000000000001"); gone != nil || gjson.GetBytes(body, "output.0.content.0.text").Str == "" {
		t.Errorf("another dialect's: %s, %v", body, gone)
	}
}

// Rules: K6.
func TestTheStoreIsShared_K6(t *testing.T) {
	s := newShelf()
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			o := Owner{Tenant: "acme", Key: itoa(n)}
			id := s.ask(t, o, `{"model":"m","input":"one"}`, "ONE", itoa(n))
			for range 20 {
				next := s.ask(t, o, `{"model":"m","input":"x","previous_response_id":"`+id+`"}`, "X", id[len(idPrefix):]+"0")
				if _, gone := s.Get(o, id); gone != nil {
					t.Error(gone)
				}
				id = next
			}
		})
	}
	group.Wait()
}

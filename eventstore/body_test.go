package eventstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// The stored form of an event, released and therefore for ever (E8).
func TestBodyGolden_E8(t *testing.T) {
	body, err := encodeBody([]Event{
		{Type: "attempt_reserved", Version: 1, At: time.Date(2026, 11, 29, 12, 0, 0, 123_456_000, time.UTC), Data: []byte(`{"hold_nanousd":2727600,"s":"a\nb é"}`)},
		{Type: "attempt_settled", Version: 12, Data: []byte("{\n\t\"charge_nanousd\": 1 }")},
		{Type: "x9", Version: 1, At: time.UnixMicro(-5), Data: []byte(`{}`)},
	})
	const golden = `attempt_reserved 1 1795953600123456 {"hold_nanousd":2727600,"s":"a\nb é"}
attempt_settled 12 0 {"charge_nanousd":1}
x9 1 -5 {}
`
	if err != nil || body != golden {
		t.Fatalf("%v\n%s", err, body)
	}
}

// Rules: E9.
func TestChainHashGolden_E9(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 123_456_000, time.UTC)
	got := chainHash(Hash{1, 2, 3}, 4, at, []row{
		{position: 2, events: 2, stream: "tenant/acme", version: 2, born: configBorn, meta: `{"worker":"w"}`, body: "a 1 0 {}\nb 1 0 {}\n"},
		{position: 3, events: 1, stream: "circuit/a/b", version: 9, born: stateBorn, meta: `{}`, body: "c 1 0 {}\n"},
	})
	if want := "5485dc8aa8f581173a5d1f99e65e2a03f4a8fa7dcf4ee345bbea9727a2ba8cf6"; got.String() != want {
		t.Errorf("hash %s, want %s: a changed input needs a new hashFormat", got, want)
	}
}

// Rules: E6.
func TestUnstorableEventsAreRefusedBeforeTheyQueue_E6(t *testing.T) {
	ok := Event{Type: "a", Version: 1, Data: []byte(`{}`)}
	for name, change := range map[string]func(*Event){
		"no type":           func(e *Event) { e.Type = "" },
		"Go type name":      func(e *Event) { e.Type = "AttemptSettled" },
		"space in type":     func(e *Event) { e.Type = "a b" },
		"digit first":       func(e *Event) { e.Type = "1a" },
		"long type":         func(e *Event) { e.Type = strings.Repeat("a", 65) },
		"version 0":         func(e *Event) { e.Version = 0 },
		"version too large": func(e *Event) { e.Version = 32768 },
		"no data":           func(e *Event) { e.Data = nil },
		"an array":          func(e *Event) { e.Data = []byte(`[]`) },
		"two objects":       func(e *Event) { e.Data = []byte(`{}{}`) },
		"cut off":           func(e *Event) { e.Data = []byte(`{"a":`) },
		"not UTF-8":         func(e *Event) { e.Data = []byte("{\"a\":\"\xff\"}") },
		"far year":          func(e *Event) { e.At = time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"too large":         func(e *Event) { e.Data = []byte(`{"a":"` + strings.Repeat("a", maxEventBytes) + `"}`) },
	} {
		e := ok
		change(&e)
		if _, err := encodeBody([]Event{ok, e}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := encodeBody(nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("no events: got %v", err)
	}
}

// What a row says of its events must be what its body holds.
//
// Rules: E9.
func TestRowsThatDoNotAddUpAreCorrupt_E9(t *testing.T) {
	for name, r := range map[string]Row{
		"fewer lines":     {Position: 2, Events: 2, Version: 2, body: []byte("a 1 0 {}\n")},
		"more lines":      {Position: 1, Events: 1, Version: 1, body: []byte("a 1 0 {}\nb 1 0 {}\n")},
		"no newline":      {Position: 1, Events: 1, Version: 1, body: []byte("a 1 0 {}")},
		"no observed":     {Position: 1, Events: 1, Version: 1, body: []byte("a 1 {}\n")},
		"letters":         {Position: 1, Events: 1, Version: 1, body: []byte("a x 0 {}\n")},
		"version 0":       {Position: 1, Events: 1, Version: 1, body: []byte("a 0 0 {}\n")},
		"overlong number": {Position: 1, Events: 1, Version: 1, body: []byte("a 1 1234567890123456789 {}\n")},
	} {
		var last error
		for _, err := range r.All() {
			last = err
		}
		if !errors.Is(last, ErrCorrupt) {
			t.Errorf("%s: got %v", name, last)
		}
	}
}

// Whatever can be encoded reads back the same.
func FuzzBodyRoundTrip(f *testing.F) {
	f.Add("a", 1, int64(0), []byte(`{}`))
	f.Add("attempt_settled", 2, int64(1_764_417_600_123_456), []byte("{\"a\": [1,\n2]}"))
	f.Fuzz(func(t *testing.T, name string, version int, micros int64, data []byte) {
		e := Event{Type: name, Version: version, At: time.UnixMicro(micros), Data: data}
		body, err := encodeBody([]Event{e, e})
		if err != nil {
			return
		}
		n := 0
		for raw, err := range lines([]byte(body)) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			want, got := new(bytes.Buffer), new(bytes.Buffer)
			if json.Compact(want, data) != nil || json.Compact(got, raw.Data) != nil {
				t.Fatalf("stored data %q is not JSON", raw.Data)
			}
			if string(raw.Type) != name || raw.TypeVersion != version || raw.ObservedMicros != micros || !bytes.Equal(want.Bytes(), got.Bytes()) {
				t.Fatalf("%q became %+v", data, raw)
			}
		}
		if n != 2 {
			t.Fatalf("%d lines", n)
		}
	})
}

// A decoder never panics and never finds more than there is.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a 1 0 {}\n"))
	f.Add([]byte("a 1 0 {}\nb"))
	f.Fuzz(func(t *testing.T, body []byte) {
		n := 0
		for raw, err := range lines(body) {
			if err == nil && (len(raw.Type) == 0 || len(raw.Data) < 2) {
				t.Fatalf("accepted %+v", raw)
			}
			n++
		}
		if n > bytes.Count(body, []byte("\n"))+1 {
			t.Fatalf("%d lines of %q", n, body)
		}
	})
}

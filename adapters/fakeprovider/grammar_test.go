package fakeprovider

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestEveryFaultEnds_O9 calls each fault of the table, both ways, from a caller
// with a deadline: it is done, its outcome stands in the ledger, and nothing
// stays open.
//
// Rules: O9.
func TestEveryFaultEnds_O9(t *testing.T) {
	for _, model := range ModelNames() {
		synctest.Test(t, func(t *testing.T) {
			pipe := NewPipe()
			s := StartOn(t, pipe, Options{})
			transport := &http.Transport{DialContext: pipe.Dial}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			for _, stream := range []string{"true", "false"} {
				response, err := client.Post(s.URL()+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"`+model+`","stream":`+stream+`}`))
				if err == nil {
					response.Body.Close()
				}
			}
			err := s.Await(context.Background(), func(calls []Call) bool {
				return len(calls) == 2 && calls[0].Done && calls[1].Done
			})
			synctest.Wait()
			ledger := s.Ledger()
			if stats := s.Stats(); err != nil || stats.OpenCalls != 0 || stats.OpenStreams != 0 {
				t.Errorf("%s: %v, %+v", model, err, stats)
			}
			want := strings.Split(strings.TrimPrefix(model, modelPrefix), ",")[0]
			if ledger.Calls[0].Outcome != want {
				t.Errorf("%s: outcome %q", model, ledger.Calls[0].Outcome)
			}
		})
	}
}

// TestHelpListsEveryFault and no fault twice.
func TestHelpListsEveryFault(t *testing.T) {
	help, total := Help(), 0
	for _, s := range sections() {
		for _, f := range s.faults {
			total++
			if f.doc == "" || !strings.Contains(help, f.doc) || !strings.Contains(help, "\n  "+f.name) {
				t.Errorf("%s is not in the help", f.name)
			}
			if !slices.ContainsFunc(strings.FieldsFunc(f.example, func(r rune) bool { return r == '+' || r == ',' }), func(part string) bool {
				name, _, _ := strings.Cut(part, ":")
				return name == f.name
			}) {
				t.Errorf("the example %q does not show %s", f.example, f.name)
			}
		}
	}
	if total != len(faultsByName) {
		t.Errorf("%d faults, %d names", total, len(faultsByName))
	}
}

// TestWrongNames are refused with a reason.
func TestWrongNames(t *testing.T) {
	for _, name := range []string{
		"", "nothing", "ok:1", "ok,", "words:-1", "words:x", "words:1000001", "big:0", "big:65m", "big:x", "delay:x", "delay:-1s",
		"cut:1:sideways", "error:x", "error:1:nothing", "funding:nobody", "status:200", "usage:nowhere", "429:soon", "429:date:x",
		"429:reset:x", "relay", "stall-body", "retry-after:1", "trickle:0s", "finish", "drip:x",
		strings.Repeat("ok+", maxParts) + "ok", strings.Repeat("ok,", maxOutcomes) + "ok",
	} {
		if plans, err := parseSequence(name); err == nil || plans != nil {
			t.Errorf("%.40q is accepted", name)
		}
	}
}

// TestModelNamesAreBounded keeps callers from filling the server's memory.
func TestModelNamesAreBounded(t *testing.T) {
	d, err := newDirector("")
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxModels {
		if _, err := d.plan("fake-"+strings.Repeat("ok+", i%30)+"words:"+string(rune('1'+i%9))+"+words:"+itoa(i), "k"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.plan("fake-words:999999", "k"); err == nil {
		t.Error("one name too many is accepted")
	}
	if _, err := d.plan("any-other-name", "k"); err != nil {
		t.Error(err)
	}
}

func itoa(i int) string { b, _ := json.Marshal(i); return string(b) }

// TestFramingKeepsData_S12: whatever the framing and the payload, joining the
// data lines gives the payload back (JSON may have a line feed after a comma).
//
// Rules: S12.
func TestFramingKeepsData_S12(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "members")
		payload, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		f := framing{
			ends:      lineEnds(rapid.IntRange(int(endsLF), int(endsMixed)).Draw(t, "ends")),
			noSpace:   rapid.Bool().Draw(t, "noSpace"),
			multiLine: rapid.Bool().Draw(t, "multiLine"),
			comments:  rapid.Bool().Draw(t, "comments"),
			fields:    rapid.Bool().Draw(t, "fields"),
		}
		framed := string(f.append(nil, rapid.IntRange(0, 20).Draw(t, "n"), event{data: payload}))
		lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(framed, "\r\n", "\n"), "\r", "\n"), "\n")
		var data []string
		for _, line := range lines {
			if value, ok := strings.CutPrefix(line, "data:"); ok {
				data = append(data, strings.TrimPrefix(value, " "))
			}
		}
		got := map[string]string{}
		if err := json.Unmarshal([]byte(strings.Join(data, "\n")), &got); err != nil {
			t.Fatalf("%v in %q", err, framed)
		}
		again, _ := json.Marshal(got)
		if string(again) != string(payload) {
			t.Fatalf("got %s, want %s", again, payload)
		}
	})
}

// TestSplitKeepsEverything_S12: however a stream is cut, bytes and tokens are
// the same.
//
// Rules: S12.
func TestSplitKeepsEverything_S12(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var segments []segment
		var want []byte
		tokens := 0
		for _, text := range rapid.SliceOf(rapid.StringN(1, 20, -1)).Draw(t, "segments") {
			segments = append(segments, segment{[]byte(text), 1})
			want, tokens = append(want, text...), tokens+1
		}
		every, at := rapid.IntRange(0, 9).Draw(t, "every"), rapid.IntRange(0, 99).Draw(t, "at")
		var got []byte
		for _, s := range splitSegments(segments, every, at) {
			if len(s.bytes) == 0 || (every > 0 && len(s.bytes) > every) {
				t.Fatalf("a piece of %d bytes", len(s.bytes))
			}
			got, tokens = append(got, s.bytes...), tokens-s.tokens
		}
		if string(got) != string(want) || tokens != 0 {
			t.Fatalf("got %q, want %q, %d tokens lost", got, want, tokens)
		}
	})
}

// TestSchemaExamples are shaped as their schema says.
func TestSchemaExamples(t *testing.T) {
	for schema, want := range map[string]string{
		``:                      `{}`,
		`{}`:                    `"text"`,
		`true`:                  `{}`,
		`{"type":"integer"}`:    `1`,
		`{"type":"boolean"}`:    `true`,
		`{"type":"null"}`:       `null`,
		`{"type":["string",1]}`: `"text"`,
		`{"const":{"a":1}}`:     `{"a":1}`,
		`{"properties":{"b":{"type":"number","minimum":2.5},"a":{"type":"string"}}}`: `{"b":2.5,"a":"text"}`,
		`{"type":"array","minItems":2,"items":{"enum":[7,8]}}`:                       `[7,7]`,
		`{"anyOf":[{"type":"null"},{"type":"string"}]}`:                              `null`,
		`{"$ref":"#/$defs/N","$defs":{"N":{"type":"integer"}}}`:                      `1`,
		`{"$ref":"#/definitions/N","definitions":{"N":{"type":"integer"}}}`:          `1`,
		`{"$ref":"#/nowhere"}`: `null`,
		`{"$ref":"#"}`:         `null`,
	} {
		if got := exampleOf(json.RawMessage(schema)); got != want {
			t.Errorf("%s gives %s, want %s", schema, got, want)
		}
	}
}

// FuzzOutcome parses what a caller can put into a model name.
func FuzzOutcome(f *testing.F) {
	for _, name := range ModelNames() {
		f.Add(strings.TrimPrefix(name, modelPrefix))
	}
	f.Fuzz(func(t *testing.T, text string) {
		plans, err := parseSequence(text)
		if (err == nil) != (len(plans) > 0) {
			t.Errorf("%d plans, error %v", len(plans), err)
		}
	})
}

// FuzzSchema makes examples of any schema: JSON, and bounded.
func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}`)
	f.Add(`{"type":"array","minItems":9,"items":{"$ref":"#"}}`)
	f.Fuzz(func(t *testing.T, schema string) {
		got := exampleOf(json.RawMessage(schema))
		if !json.Valid([]byte(got)) || len(got) > 4*maxExampleSize+len(schema)*maxSchemaDepth*maxSchemaItems {
			t.Errorf("%d bytes: %.200s", len(got), got)
		}
	})
}

// FuzzChatRequest reads any body, and answers what it can read with JSON.
func FuzzChatRequest(f *testing.F) {
	f.Add(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"tools":[{"function":{"name":"f"}}],"tool_choice":"required","max_tokens":3}`)
	f.Fuzz(func(t *testing.T, body string) {
		in, err := chat{}.parse(nil, []byte(body))
		if err != nil {
			return
		}
		p, err := parseOutcome("reasoning:2+usage:last")
		if err != nil {
			t.Fatal(err)
		}
		a := makeAnswer(p, in, callFacts{sequence: 1}, 0)
		if whole := (chat{}).whole(a); !json.Valid(whole) {
			t.Errorf("whole: %s", whole)
		}
		for _, e := range (chat{}).events(a) {
			if !e.last && !json.Valid(e.data) {
				t.Errorf("event: %s", e.data)
			}
		}
	})
}

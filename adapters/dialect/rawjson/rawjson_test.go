package rawjson

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/sluice-gateway/sluice/domain/usage"
)

// encoding/json is the judge of what is written.
func TestAppendQuotedReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "text") {
			s = rapid.String().Draw(t, "string")
		}
		var got string
		if err := json.Unmarshal(AppendQuoted(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		if want := string([]rune(s)); got != want {
			t.Fatalf("%q reads back as %q", want, got)
		}
		if string(AppendQuoted(nil, s)) != string(AppendQuoted(nil, []byte(s))) {
			t.Fatal("bytes and strings differ")
		}
	})
}

// Rules: Z5.
func TestShallow_Z5(t *testing.T) {
	tests := []struct {
		name, doc string
		want      bool
	}{
		{"as deep as allowed", strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), true},
		{"one too deep", strings.Repeat("[", MaxDepth+1), false},
		{"brackets in a string", `"` + strings.Repeat("[", MaxDepth+1) + `"`, true},
		{"behind an escaped quote", `"\"` + strings.Repeat("[", MaxDepth+1) + `"`, true},
		{"behind an escaped backslash", `"\\"` + strings.Repeat("[", MaxDepth+1), false},
		{"an open string", `"\"`, true},
	}
	for _, tt := range tests {
		if got := Shallow([]byte(tt.doc)); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// Whatever is cut and added, the rest stays valid, in order and as it was spelled.
//
// Rules: P4, P12.
func TestEditsLeaveTheRest_P4_P12(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 6).Draw(t, "members")
		var doc, want []string
		goes := map[string]bool{}
		for i := range n {
			key := string(rune('a' + i))
			value := rapid.SampledFrom([]string{`1.50`, `"\u00e9"`, `[ 1,2 ]`, `{"x": {}}`, `null`}).Draw(t, key)
			doc = append(doc, ` "`+key+`" : `+value+` `)
			if goes[key] = rapid.Bool().Draw(t, "cut"); !goes[key] {
				want = append(want, key+value)
			}
		}
		raw := []byte("{" + strings.Join(doc, ",") + "} ")
		r, ok := Parse(raw)
		if !ok {
			t.Fatalf("cannot read %s", raw)
		}
		cut := Remover{Doc: raw}
		var edits []Edit
		r.ForEach(func(key, v gjson.Result) bool {
			if goes[key.Str] {
				edits = append(edits, cut.Cut(key, v))
			} else {
				cut.Stay(v)
			}
			return true
		})
		out := Splice(nil, raw, edits)
		r, ok = Parse(out)
		if !ok {
			t.Fatalf("%s became %s", raw, out)
		}
		out = Splice(nil, out, []Edit{Insert(out, r, []byte(`"z":1`))})
		var got []string
		gjson.ParseBytes(out).ForEach(func(key, v gjson.Result) bool {
			got = append(got, key.Str+v.Raw)
			return true
		})
		want = append(want, "z1")
		if !gjson.ValidBytes(out) || strings.Join(got, "|") != strings.Join(want, "|") {
			t.Fatalf("%s became %s", raw, out)
		}
	})
}

func TestInteger(t *testing.T) {
	for in, want := range map[string]int64{"12": 12, "12.0": 12, "-3": -3, "1e3": 1000} {
		if got, ok := Integer(gjson.Parse(in)); !ok || got != want {
			t.Errorf("%s = %d, %v", in, got, ok)
		}
	}
	for _, in := range []string{"1.5", "1e300", `"1"`, "null"} {
		if got, ok := Integer(gjson.Parse(in)); ok {
			t.Errorf("%s = %d", in, got)
		}
	}
}

// Rules: M4, M6.
func TestWhatIsNoCountIsUnknown_M4_M6(t *testing.T) {
	for text, want := range map[string]usage.Count{
		`{}`: {}, `{"n":null}`: {State: usage.Null}, `{"n":0}`: usage.Of(0), `{"n":12.0}`: usage.Of(12),
		`{"n":-1}`: {State: usage.Null}, `{"n":1.5}`: {State: usage.Null}, `{"n":"12"}`: {State: usage.Null},
		`{"n":1000000000}`: usage.Of(usage.MaxCount), `{"n":1000000001}`: {State: usage.Null},
		`{"n":99999999999999999999}`: {State: usage.Null},
	} {
		if got := Count(gjson.Get(text, "n")); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

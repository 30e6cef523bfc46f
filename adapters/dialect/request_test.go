package dialect

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Rules: A6.
func TestTexts_A6(t *testing.T) {
	r := Request{
		Raw: []byte(`"plain" "a\nb" "c\"d"`),
		Parts: Parts{Spans: []Span{
			{Start: 1, End: 6},
			{Start: 9, End: 13, Escaped: true},
			{Start: 16, End: 20, Escaped: true},
		}},
	}
	var got []string
	for text := range r.Texts() {
		got = append(got, string(text))
	}
	if diff := cmp.Diff([]string{"plain", "a\nb", `c"d`}, got); diff != "" {
		t.Error(diff)
	}
	for text := range r.Texts() {
		if string(text) != "plain" {
			t.Error("went on after the caller had enough")
		}
		break
	}
}

// encoding/json is the judge: whatever it reads, we read alike.
func TestAppendUnescapedAgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var inside []byte
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				quoted, err := json.Marshal(rapid.String().Draw(t, "text"))
				if err != nil {
					t.Fatal(err)
				}
				inside = append(inside, quoted[1:len(quoted)-1]...)
			case 1:
				inside = append(inside, rapid.SampledFrom([]string{`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`}).Draw(t, "escape")...)
			case 2:
				// Surrogates too, paired and not.
				n := rapid.SampledFrom([]int64{0, 0x41, 0xe9, 0x6f22, 0xd83e, 0xdda5, 0xd800, 0xdfff, 0xffff}).Draw(t, "unit")
				hex := "0000" + strconv.FormatInt(n, 16)
				inside = append(append(inside, `\u`...), hex[len(hex)-4:]...)
			}
		}
		var want string
		if err := json.Unmarshal([]byte(`"`+string(inside)+`"`), &want); err != nil {
			t.Fatal(err)
		}
		if got := string(AppendUnescaped(nil, inside)); got != want {
			t.Fatalf("%s reads as %q, want %q", inside, got, want)
		}
	})
}

func FuzzAppendUnescaped(f *testing.F) {
	f.Add([]byte(`a\u00e9\ud83e\udda5\`))
	f.Add([]byte(`\u12`))
	f.Fuzz(func(t *testing.T, s []byte) {
		got := AppendUnescaped(nil, s)
		if !json.Valid(append(append([]byte{'"'}, s...), '"')) {
			return
		}
		var want string
		if err := json.Unmarshal(append(append([]byte{'"'}, s...), '"'), &want); err == nil && want != string([]rune(string(got))) {
			t.Fatalf("%s reads as %q, want %q", s, got, want)
		}
	})
}

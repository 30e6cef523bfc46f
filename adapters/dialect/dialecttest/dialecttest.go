// Package dialecttest is what the tests of the dialects share.
package dialecttest

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// DecodeJSON fails the test over what is no JSON.
func DecodeJSON(t testing.TB, s string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	return v
}

// SameJSON compares trees.
func SameJSON(t testing.TB, want, got string) {
	t.Helper()
	if diff := cmp.Diff(DecodeJSON(t, want), DecodeJSON(t, got)); diff != "" {
		t.Errorf("want %s\n got %s\n%s", want, got, diff)
	}
}

// Fixtures are the files with a suffix: a dialect's own small ones, which have to be
// there, and the recordings of a provider's directory, "*" for all. The recordings are
// not part of the project: they stand beside a checkout, or not. Call it from a test of
// a dialect's package: both places are sought from there.
func Fixtures(t testing.TB, provider, suffix string) (own, recordings []string) {
	t.Helper()
	own, err := filepath.Glob("testdata/*" + suffix)
	if err != nil || len(own) == 0 {
		t.Fatalf("no own fixtures %s: %v", suffix, err)
	}
	root, err := filepath.Abs("../../../../shared/fixtures/provider-streams")
	if err != nil {
		t.Fatal(err)
	}
	recordings, _ = filepath.Glob(filepath.Join(root, provider, "*"+suffix))
	if len(recordings) == 0 {
		t.Log("only our own fixtures: the recorded responses are not at ../shared beside the checkout")
	}
	return own, recordings
}

package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

func document(t testing.TB, text string) config.Document {
	t.Helper()
	doc, err := config.ParseDocument([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// A merge patch changes what it names and nothing else (RFC 7386, C9).
func TestMerge_C9(t *testing.T) {
	const target = `{"failover_mode":"maximize_cache","max_attempts":4,"circuit":{"failures_to_open":3,"open_for":"5s"}}`
	for patch, want := range map[string]string{
		`{}`:                            target,
		`{"max_attempts":5}`:            `{"failover_mode":"maximize_cache","max_attempts":5,"circuit":{"failures_to_open":3,"open_for":"5s"}}`,
		`{"max_attempts":null}`:         `{"failover_mode":"maximize_cache","circuit":{"failures_to_open":3,"open_for":"5s"}}`,
		`{"circuit":{"open_for":null}}`: `{"failover_mode":"maximize_cache","max_attempts":4,"circuit":{"failures_to_open":3}}`,
		`{"circuit":null}`:              `{"failover_mode":"maximize_cache","max_attempts":4}`,
		`{"throttle_redial":{"max_retries":1,"base_delay":null}}`: `{"failover_mode":"maximize_cache","max_attempts":4,"throttle_redial":{"max_retries":1},"circuit":{"failures_to_open":3,"open_for":"5s"}}`,
	} {
		var got, wanted catalog.Policy
		if err := document(t, target).Merge(document(t, patch)).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", patch, diff)
		}
	}
}

// Whatever is sent is read or refused; what is read means what the JSON said, and a
// refusal never repeats a value (C14).
func FuzzParseDocument_C14(f *testing.F) {
	for _, seed := range []string{
		`{"id":"p","protocol":"openai","base_url":"https://h.test","keys":[{"id":"k","env":"K"}]}`,
		`{"id":"p","id":"p"}`, `{"keys":[null]}`, `{"id":null}`, `{"a":` + strings.Repeat("[", 100), `{"id":"\ud83c\udf0a"}`, `{"id":1e5}`, `[]`, `{} {}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := config.ParseDocument([]byte(text))
		if err != nil {
			return
		}
		var got, want catalog.Provider
		if doc.Decode(&got) != nil {
			return
		}
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("reads what is no provider: %v", err)
		}
		if len(want.Keys) == 0 {
			want.Keys = got.Keys // an empty list and none
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-json +document):\n%s", diff)
		}
	})
}

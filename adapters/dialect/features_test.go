package dialect

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Every feature is decided on: one that nobody thought about would be dropped
// without a word.
//
// Rules: P5.
func TestEveryFeatureHasItsCarriers_P5(t *testing.T) {
	for _, f := range Features() {
		if _, ok := carriers[f]; !ok {
			t.Errorf("nobody said who carries %q", f)
		}
	}
	if len(carriers) != len(Features()) {
		t.Errorf("%d features are listed, %d have carriers", len(Features()), len(carriers))
	}
}

// Rules: P5.
func TestUnsayable_P5(t *testing.T) {
	r := &Request{Dialect: neutral.Chat}
	if got := r.Unsayable(); got != nil {
		t.Errorf("a request without features: %v", got)
	}
	r.Use(AudioInput)
	r.Use(AudioInput)
	r.Use(SeveralChoices)
	want := map[catalog.Protocol]string{
		catalog.OpenAIResponses: "audio_input", catalog.Anthropic: "audio_input", catalog.Bedrock: "audio_input",
		catalog.Gemini: "several_choices",
	}
	if diff := cmp.Diff(want, r.Unsayable()); diff != "" {
		t.Error(diff)
	}
}

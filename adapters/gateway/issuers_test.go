package gateway

import (
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/domain/neutral"
)

// Rules: K4.
func TestIssuersAreRememberedForTheirCaller_K4(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	s := newIssuers(func() time.Time { return now })
	s.note("acme/k1", neutral.OpaqueReasoning{}, "nobody")
	s.note("acme/k1", neutral.OpaqueReasoning{ID: "rs_1", Encrypted: "gAAA"}, "d1")
	for name, tt := range map[string]struct {
		caller string
		seal   neutral.OpaqueReasoning
		want   string
	}{
		"as it was":               {"acme/k1", neutral.OpaqueReasoning{ID: "rs_1", Encrypted: "gAAA"}, "d1"},
		"encrypted anew":          {"acme/k1", neutral.OpaqueReasoning{ID: "rs_1", Encrypted: "gBBB"}, "d1"},
		"without its id":          {"acme/k1", neutral.OpaqueReasoning{Encrypted: "gAAA"}, "d1"},
		"another piece":           {"acme/k1", neutral.OpaqueReasoning{ID: "rs_2", Encrypted: "gCCC"}, ""},
		"a signature of the same": {"acme/k1", neutral.OpaqueReasoning{Signature: "gAAA"}, ""},
		"another caller":          {"acme/k2", neutral.OpaqueReasoning{ID: "rs_1", Encrypted: "gAAA"}, ""},
		"none":                    {"acme/k1", neutral.OpaqueReasoning{}, ""},
	} {
		if got := s.of(tt.caller, tt.seal); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	s.note("acme/k1", neutral.OpaqueReasoning{ID: "rs_1"}, "d2")
	if got := s.of("acme/k1", neutral.OpaqueReasoning{ID: "rs_1"}); got != "d2" {
		t.Errorf("the newest issuer is %q", got)
	}
	now = now.Add(issuerKnownFor)
	if got := s.of("acme/k1", neutral.OpaqueReasoning{ID: "rs_1"}); got != "" {
		t.Errorf("remembered for ever: %q", got)
	}
}

// Rules: Z5.
func TestIssuersAreBounded_Z5(t *testing.T) {
	s := newIssuers(time.Now)
	for n := range maxIssuers + 10 {
		s.note("acme/k1", neutral.OpaqueReasoning{ID: time.Duration(n).String()}, "d1")
	}
	if len(s.known) != maxIssuers || s.noted.Len() != maxIssuers {
		t.Errorf("%d are remembered", len(s.known))
	}
	if s.of("acme/k1", neutral.OpaqueReasoning{ID: time.Duration(0).String()}) != "" {
		t.Error("the oldest is still there")
	}
}

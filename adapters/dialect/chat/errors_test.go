package chat

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/domain/failure"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	path := "testdata/golden/" + file
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

// Rules: D7, W16.
func TestErrors_D7_W16(t *testing.T) {
	limit, used := int64(600), int64(600)
	budget := apierror.New(apierror.RateLimitExceeded)
	budget.RequestID, budget.Scope, budget.Limit, budget.Used, budget.Unit = "r1", "organization", &limit, &used, "requests"
	budget.ResetsAt, budget.RetryAfter = time.Date(2026, 11, 29, 10, 1, 0, 0, time.UTC), 90*time.Second+time.Millisecond/2

	spent := apierror.New(apierror.UpstreamExhausted)
	spent.RequestID = "r2"
	spent.Attempts = []apierror.Attempt{{Provider: "a", Model: "m", Failure: "server_error", Status: 503}, {Provider: "b", Model: "m", Failure: "breaker_open"}}

	relayed := apierror.New(apierror.InvalidRequest)
	relayed.RequestID = "r3"
	relayed.Relay = &failure.Relay{Status: 422, Message: "n is <bad>", Type: "invalid_request_error", Param: "n", Code: "invalid_value"}

	for name, e := range map[string]*apierror.Error{"budget": budget, "spent": spent, "relayed": relayed} {
		t.Run(name, func(t *testing.T) {
			status, header, body := Inbound{}.Error(e)
			golden(t, "error-"+name+".json", body)
			golden(t, "error-"+name+".event", Inbound{}.NewStream(asking(false), meta).Fail(nil, e))
			if status != e.HTTPStatus() || header.Get("Content-Type") != "application/json" {
				t.Errorf("status %d, header %v", status, header)
			}
		})
	}
	if status, _, _ := (Inbound{}).Error(relayed); status != 422 {
		t.Errorf("status = %d, want the provider's own (W3)", status)
	}
}

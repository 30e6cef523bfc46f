package circuit

import (
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/domain/failure"
)

// TestJudge_W1 walks through the table of failures: what each class means to the
// four circuits of a route.
//
// Rules: W1.
func TestJudge_W1(t *testing.T) {
	type effects struct{ byKey, route, endpoint, credential Effect }
	rows := map[failure.Class]struct {
		status int
		want   effects
	}{
		failure.ConnectError:     {0, effects{route: Failed, endpoint: Failed}},
		failure.TimeoutFirstByte: {0, effects{route: Failed, endpoint: Failed}},
		failure.TimeoutAttempt:   {200, effects{route: Failed, endpoint: Reached}},
		failure.ServerError:      {503, effects{route: Failed, endpoint: FailedFor}},
		failure.StreamTruncated:  {200, effects{route: Failed, endpoint: Reached}},
		failure.StreamErrorEvent: {200, effects{route: Failed, endpoint: Reached}},
		failure.BadPayload:       {200, effects{route: Failed, endpoint: Reached}},
		failure.Throttled:        {429, effects{byKey: Throttle, endpoint: Reached}},
		failure.ProviderAuth:     {401, effects{byKey: FailedAtOnce, endpoint: Reached, credential: FailedAtOnce}},
		failure.ProviderQuota:    {402, effects{byKey: FailedAtOnce, endpoint: Reached, credential: OutOfFunds}},
		failure.DeploymentGone:   {404, effects{route: FailedAtOnce, endpoint: Reached}},
		failure.EmptyCompletion:  {200, effects{endpoint: Reached}},
		failure.BaseURLRefused:   {0, effects{}},

		failure.InvalidRequest:     {400, effects{endpoint: Reached}},
		failure.ContextLength:      {400, effects{endpoint: Reached}},
		failure.QuotaExceeded:      {0, effects{}},
		failure.ContentPolicy:      {400, effects{endpoint: Reached}},
		failure.Refusal:            {200, effects{endpoint: Reached}},
		failure.ClientCancelled:    {0, effects{}},
		failure.DeadlineExceeded:   {0, effects{}},
		failure.CustomerCredential: {401, effects{endpoint: Reached, credential: FailedAtOnce}},
	}
	for _, class := range failure.Classes() {
		row, ok := rows[class]
		if !ok {
			t.Errorf("%s has no row", class)
			continue
		}
		s := Judge(&failure.Failure{Class: class, Status: row.status}, "acme/key")
		got := effects{s.ByKey.Effect, s.Route.Effect, s.Endpoint.Effect, s.Credential.Effect}
		if got != row.want {
			t.Errorf("%s: %+v, want %+v", class, got, row.want)
		}
	}
	ok := Judge(nil, "acme/key")
	if ok.ByKey.Effect != Success || ok.Route.Effect != Success || ok.Endpoint.Effect != Success || ok.Credential.Effect != Success {
		t.Errorf("an answer that ended properly: %+v", ok)
	}
}

// TestThrottleLengths_H2_W18: the route's window is clamped and has a default; the
// key is parked exactly as long as was said, and without a word not at all.
//
// Rules: H2, W18.
func TestThrottleLengths_H2_W18(t *testing.T) {
	for name, tc := range map[string]struct {
		retry          failure.Retry
		window, parked time.Duration
	}{
		"nothing said":   {failure.Retry{}, 30 * time.Second, 0},
		"within bounds":  {failure.Retry{After: 17 * time.Second, Told: true}, 17 * time.Second, 17 * time.Second},
		"shorter":        {failure.Retry{After: time.Second, Told: true}, 5 * time.Second, time.Second},
		"now":            {failure.Retry{Told: true}, 5 * time.Second, 0},
		"absurdly long":  {failure.Retry{After: 1000 * time.Hour, Told: true}, 6 * time.Hour, 6 * time.Hour},
		"a source alone": {failure.Retry{Source: "retry-after"}, 30 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := Judge(&failure.Failure{Class: failure.Throttled, Status: 429, Retry: tc.retry}, "acme/key")
			var route, key Circuit
			route.Observe(s.ByKey, RoutePolicy(0, 0, 0), start)
			key.Observe(s.Credential, CredentialPolicy(), start)
			if got := route.ThrottledUntil().Sub(start); got != tc.window {
				t.Errorf("window %v, want %v", got, tc.window)
			}
			if tc.parked == 0 && key.Throttled(start) {
				t.Errorf("parked until %v", key.ThrottledUntil())
			}
			if tc.parked > 0 && key.ThrottledUntil().Sub(start) != tc.parked {
				t.Errorf("parked %v, want %v", key.ThrottledUntil().Sub(start), tc.parked)
			}
		})
	}
}

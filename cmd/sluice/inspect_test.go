package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/projections/bills"
)

// served runs one request through a worker and leaves a log with it; it returns the
// request's id.
func served(t *testing.T) string {
	t.Helper()
	fake := fakeprovider.Start(t, fakeprovider.Options{})
	key := configure(t, fake.URL()+"/v1")
	s := serve(t)
	reply, err := post(s.public+"/v1/chat/completions", key, hello)
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	eventually(t, "the bill has the request", func() bool {
		return strings.Contains(must(t, "rebuild", "bills", "--dry-run"), "acme") && reply.StatusCode == http.StatusOK
	})
	if code := s.end(); code != exitDone {
		t.Fatalf("exit %d:\n%s", code, s.stderr)
	}
	return reply.Header.Get("X-Request-Id")
}

func TestLookingAtARequest(t *testing.T) {
	id := served(t)

	t.Run("trail is drawn_X5", func(t *testing.T) {
		out := must(t, "trail", id)
		for _, says := range []string{id, "admitted", "attempt 1", "finalized: completed"} {
			if !strings.Contains(out, says) {
				t.Errorf("does not say %q:\n%s", says, out)
			}
		}
	})
	t.Run("trail as JSON", func(t *testing.T) {
		got := decode[struct {
			RequestID string `json:"request_id"`
			Outcome   string
			Entries   []struct{ Seq int }
		}](t, must(t, "trail", id, "--output", "json"))
		if got.RequestID != id || got.Outcome != "completed" || len(got.Entries) < 4 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("no such request", func(t *testing.T) {
		refused(t, exitFailed, "there is no request", "trail", "019b3c1e-7c1a-7d58-9f3e-0a4c1c1f5b77")
	})
	t.Run("rebuild", func(t *testing.T) {
		for _, name := range []string{"requests", "bills", "budgets", "meter_holds"} {
			got := decode[rebuilt](t, must(t, "rebuild", name, "--output", "json"))
			if got.Projection != name || got.Events == 0 {
				t.Errorf("%s: %+v", name, got)
			}
		}
	})
	t.Run("dry run of bills_M15", func(t *testing.T) {
		d := decode[bills.Difference](t, must(t, "rebuild", "bills", "--dry-run", "--output", "json"))
		if d.Projection != "bills" || d.Events == 0 || len(d.Tenants) != 1 || d.Tenants[0].Before == 0 || d.Tenants[0].Difference != 0 {
			t.Errorf("got %+v", d)
		}
	})
	t.Run("verify_E4", func(t *testing.T) {
		v := decode[verified](t, must(t, "verify", "--output", "json"))
		if !v.OK || v.Chain != nil || len(v.Views) != 3 || len(v.Lives) != 1 || v.Lives[0].Requests != 1 {
			t.Errorf("got %+v", v)
		}
	})
	t.Run("verify finds a changed read model_E4", func(t *testing.T) {
		address, _ := databaseFromEnv()
		onServer(t, address.url, "update requests set charge_nanousd = charge_nanousd + 1")
		r := sluice(t, "verify")
		if r.code != exitFailed || !strings.Contains(r.stdout, "run `sluice rebuild requests`") {
			t.Errorf("exit %d: %s", r.code, r.stdout)
		}
		must(t, "rebuild", "requests")
		must(t, "verify")
	})
	t.Run("verify finds a changed event_E9", func(t *testing.T) {
		head := decode[verified](t, must(t, "verify", "--chain", "--output", "json")).Chain.Head
		must(t, "verify", "--head", head)
		last := strings.LastIndexByte(head, ':') + 1
		other := head[:last] + strings.Repeat("0", len(head)-last)
		if r := sluice(t, "verify", "--head", other); r.code != exitFailed {
			t.Errorf("takes any head: exit %d %s", r.code, r.stdout)
		}
		address, _ := databaseFromEnv()
		onServer(t, address.url, `
			alter table log_events disable trigger user;
			alter table log_events_config disable trigger user;
			update log_events set body = replace(body, 'limit_usd":"5', 'limit_usd":"9')`)
		r := sluice(t, "verify", "--chain")
		if r.code != exitFailed || !strings.Contains(r.stdout, "chain: broken at position") {
			t.Errorf("exit %d: %s", r.code, r.stdout)
		}
	})
}

func findings(t *testing.T, text string) map[string]finding {
	t.Helper()
	byCheck := map[string]finding{}
	for _, f := range decode[struct{ Checks []finding }](t, text).Checks {
		byCheck[f.Check] = f
	}
	return byCheck
}

func TestDoctor(t *testing.T) {
	configure(t, nowhere)
	t.Setenv("SLUICE_LISTEN", "127.0.0.1:0")
	t.Setenv("SLUICE_ADMIN_LISTEN", "127.0.0.1:0")
	for check, f := range findings(t, must(t, "doctor", "--output", "json")) {
		if f.Verdict != ok {
			t.Errorf("%s: %+v", check, f)
		}
	}
	t.Setenv("SLUICE_TEST_UP_KEY", "")
	r := sluice(t, "doctor", "--output", "json")
	if f := findings(t, r.stdout)["provider up"]; r.code != exitFailed || f.Verdict != warn || !strings.Contains(f.Detail, "SLUICE_TEST_UP_KEY") {
		t.Errorf("a missing credential: exit %d, %+v", r.code, f)
	}
}

// Rules: Z1.
func TestDoctorFindsBaseURLsInside_Z1(t *testing.T) {
	configure(t, nowhere)
	t.Setenv("SLUICE_LISTEN", "127.0.0.1:0")
	t.Setenv("SLUICE_ADMIN_LISTEN", "127.0.0.1:0")
	t.Setenv(network.HostsEnv, "127.0.0.1:1")
	if f := findings(t, must(t, "doctor", "--output", "json"))["base URLs"]; f.Verdict != ok {
		t.Errorf("opened: %+v", f)
	}
	t.Setenv(network.HostsEnv, "127.0.0.1:2")
	r := sluice(t, "doctor", "--output", "json")
	all := findings(t, r.stdout)
	if one := all["base URL up"]; r.code != exitFailed || one.Verdict != warn || !strings.Contains(one.Detail, network.HostsEnv+"=127.0.0.1:1") || all["base URLs"].Verdict != fail {
		t.Errorf("refused: exit %d, %+v", r.code, all)
	}
	t.Setenv(network.HostsEnv, "10.0.0.0/8")
	r = sluice(t, "doctor", "--output", "json")
	if f := findings(t, r.stdout)["base URLs"]; r.code != exitFailed || f.Verdict != fail || !strings.Contains(f.Detail, "10.0.0.0/8") {
		t.Errorf("a bad list: exit %d, %+v", r.code, f)
	}
}

// What would keep a worker from serving is a failure, on one line that says what
// to do, and the exit code.
func TestDoctorFindsWhatIsWrong(t *testing.T) {
	t.Run("no database", func(t *testing.T) {
		setDatabase(t, "")
		r := sluice(t, "doctor")
		if r.code != exitFailed || !strings.Contains(r.stdout, "fail  database") || r.stderr != "" {
			t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
		}
	})
	t.Run("rights_E1", func(t *testing.T) {
		address := useDatabase(t)
		onServer(t, address, "grant update on log_events to sluice_app")
		r := sluice(t, "doctor", "--output", "json")
		if f := findings(t, r.stdout)["rights"]; r.code != exitFailed || f.Verdict != fail || !strings.Contains(f.Detail, "revoke") {
			t.Errorf("exit %d, %+v", r.code, f)
		}
	})
}

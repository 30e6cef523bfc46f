package gemini

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/failure"
)

// issuer is a token endpoint.
type issuer struct {
	asked  atomic.Int64
	status int
	err    error
	// wait, when not nil, holds each answer back until it is closed.
	wait chan struct{}
	seen func(r *http.Request, form url.Values)
}

func (g *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	n := g.asked.Add(1)
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	if g.seen != nil {
		g.seen(r, form)
	}
	if g.wait != nil {
		select {
		case <-g.wait:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if g.err != nil {
		return nil, g.err
	}
	answer := fmt.Sprintf(`{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, n)
	status := http.StatusOK
	if g.status != 0 {
		status, answer = g.status, `{"error":"invalid_grant","error_description":"SECRET was bad"}`
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(answer)),
	}, nil
}

func ofUser(name string) string {
	return `{"type":"authorized_user","client_id":"` + name + `","client_secret":"SECRET","refresh_token":"SECRET"}`
}

func authorize(ctx context.Context, o Outbound, rt http.RoundTripper, secret string) (string, *failure.Failure) {
	up := &dialect.Upstream{Header: http.Header{}}
	f := o.Authorize(ctx, rt, up, secret)
	return up.Header.Get("Authorization"), f
}

// A token is asked for once, by however many calls, and again before it ends: then
// without a wait.
func TestTokensAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, o := &issuer{wait: make(chan struct{})}, Outbound{Tokens: NewTokens()}
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() {
				if got, f := authorize(t.Context(), o, g, ofUser("a")); f != nil || got != "Bearer token-1" {
					t.Errorf("%q, %v", got, f)
				}
			})
		}
		synctest.Wait()
		close(g.wait)
		calls.Wait()

		time.Sleep(54 * time.Minute)
		if got, _ := authorize(t.Context(), o, g, ofUser("a")); got != "Bearer token-1" || g.asked.Load() != 1 {
			t.Errorf("%q after %d", got, g.asked.Load())
		}
		g.wait = make(chan struct{})
		time.Sleep(2 * time.Minute) // 4 minutes are left
		if got, _ := authorize(t.Context(), o, g, ofUser("a")); got != "Bearer token-1" {
			t.Errorf("%q while the next one is on its way", got)
		}
		close(g.wait)
		synctest.Wait()
		if got, _ := authorize(t.Context(), o, g, ofUser("a")); got != "Bearer token-2" || g.asked.Load() != 2 {
			t.Errorf("%q after %d", got, g.asked.Load())
		}
		g.wait = nil
		time.Sleep(2 * time.Hour)
		if got, _ := authorize(t.Context(), o, g, ofUser("a")); got != "Bearer token-3" {
			t.Errorf("%q after its end", got)
		}
		if got, _ := authorize(t.Context(), o, g, ofUser("b")); got != "Bearer token-4" {
			t.Errorf("another's credentials got %q", got)
		}
	})
}

// A call does not wait longer than it may, and the fetch that it leaves behind ends by
// itself.
//
// Rules: W11.
func TestWaitingForATokenEnds_W11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, o := &issuer{wait: make(chan struct{})}, Outbound{Tokens: NewTokens()}
		why := &failure.Failure{Class: failure.ConnectError, Code: "connect_timeout"}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Second, func() { cancel(why) })
		begun := time.Now()
		if _, f := authorize(ctx, o, g, ofUser("a")); f == nil || time.Since(begun) != 5*time.Second {
			t.Errorf("%v after %v", f, time.Since(begun))
		}
		time.Sleep(tokenTimeout)
		synctest.Wait() // the fetch is gone: the bubble would not end with it
	})
}

// Rules: W2.
func TestWithoutAToken_W2(t *testing.T) {
	tests := []struct {
		name   string
		google *issuer
		secret string
		class  failure.Class
		code   string
	}{
		{"refused", &issuer{status: 400}, ofUser("a"), failure.ProviderAuth, "token_refused"},
		{"busy", &issuer{status: 503}, ofUser("a"), failure.ConnectError, "token_unavailable"},
		{"throttled", &issuer{status: 429}, ofUser("a"), failure.ConnectError, "token_unavailable"},
		{"away", &issuer{err: errors.New("no route to SECRET")}, ofUser("a"), failure.ConnectError, "token_unavailable"},
		{"another kind of file", &issuer{}, `{"type":"external_account","credential_source":{"executable":{"command":"SECRET"}}}`, failure.ProviderAuth, "credentials_malformed"},
		{"a broken file", &issuer{}, `{"type":"service_account","private_key":"SECRET"}`, failure.ProviderAuth, "credentials_malformed"},
		{"no JSON", &issuer{}, `{SECRET`, failure.ProviderAuth, "credentials_malformed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, f := authorize(t.Context(), Outbound{Tokens: NewTokens()}, tt.google, tt.secret)
			if f == nil || f.Class != tt.class || f.Code != tt.code {
				t.Errorf("%v, want %s: %s", f, tt.class, tt.code)
			}
			if f != nil && (strings.Contains(fmt.Sprintf("%+v", f), "SECRET") || f.PossiblyBilled) {
				t.Errorf("%+v", f)
			}
		})
	}
	if _, f := authorize(t.Context(), Outbound{}, &issuer{}, ofUser("a")); f == nil || f.Code != "no_token_source" {
		t.Errorf("without tokens: %v", f)
	}
	// An API key stands in the header already.
	if got, f := authorize(t.Context(), Outbound{}, nil, "AIza"); got != "" || f != nil {
		t.Errorf("%q, %v", got, f)
	}
}

// A service account signs for itself at the address in its file, for the one scope.
func TestServiceAccount(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p1", "client_email": "a@p1.test", "token_uri": "https://oauth.test/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	if err != nil {
		t.Fatal(err)
	}
	g := &issuer{seen: func(r *http.Request, form url.Values) {
		if r.URL.String() != "https://oauth.test/token" || !strings.Contains(form.Get("grant_type"), "jwt-bearer") || form.Get("assertion") == "" {
			t.Errorf("%s asked with %v", r.URL, form)
		}
	}}
	if got, f := authorize(t.Context(), Outbound{Tokens: NewTokens()}, g, string(file)); f != nil || got != "Bearer token-1" {
		t.Errorf("%q, %v", got, f)
	}
	if projectOf(string(file)) != "p1" || projectOf("AIza") != "" {
		t.Error("not the file's project")
	}
}

// However many credentials there are, the cache stays as large as it may be, and keeps
// the tokens that hold longest.
func TestTokensAreBounded(t *testing.T) {
	tokens := NewTokens()
	first := time.Now()
	for i := range maxCredentials + 10 {
		tokens.keep([32]byte{byte(i), byte(i >> 8)}, &oauth2.Token{Expiry: first.Add(time.Duration(i) * time.Second)})
	}
	if n := len(tokens.byCredentials); n != maxCredentials {
		t.Errorf("%d are kept", n)
	}
	if tokens.byCredentials[[32]byte{9, 0}] != nil || tokens.byCredentials[[32]byte{10, 0}] == nil {
		t.Error("not the one that ends first was let go")
	}
}

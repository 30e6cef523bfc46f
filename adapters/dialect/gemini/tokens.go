package gemini

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/sync/singleflight"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/domain/failure"
)

const (
	// scope is the one that Vertex AI asks for.
	scope = "https://www.googleapis.com/auth/cloud-platform"
	// tokenTimeout bounds the fetch of a token, which may outlive the call that began
	// it: others wait for the same one.
	tokenTimeout = 10 * time.Second
	// refreshAhead is how long before its end a token is replaced, while calls still go
	// out with it: none of them waits for the next one.
	refreshAhead = 5 * time.Minute
	// minTokenLife is what must be left of a token for a call to start with it.
	minTokenLife = 10 * time.Second
	// maxCredentials bounds the tokens that are kept. Past it the one that ends first
	// goes, and is fetched anew when it is needed.
	maxCredentials = 1024
)

// isCredentials tells a credentials file, which Google writes as a JSON object, from
// an API key.
func isCredentials(secret string) bool { return strings.HasPrefix(secret, "{") }

// projectOf is the project that a credentials file belongs to, empty where it names
// none.
func projectOf(secret string) string {
	if !isCredentials(secret) {
		return ""
	}
	for _, path := range []string{"project_id", "quota_project_id"} {
		if project := gjson.Get(secret, path).Str; project != "" {
			return project
		}
	}
	return ""
}

// kinds are the credentials files that are taken. Other kinds can name programs to run
// and addresses to ask: not for a secret that may come from a tenant.
var kinds = map[string]google.CredentialsType{
	"service_account": google.ServiceAccount,
	"authorized_user": google.AuthorizedUser,
}

// Tokens makes OAuth tokens of credentials files and keeps each for as long as it
// holds. It is safe for concurrent use.
type Tokens struct {
	fetches singleflight.Group
	mu      sync.Mutex
	// byCredentials has the digest of a file as its key: the file itself is a secret and
	// is not kept.
	byCredentials map[[sha256.Size]byte]*oauth2.Token
}

// NewTokens is an empty cache.
func NewTokens() *Tokens {
	return &Tokens{byCredentials: map[[sha256.Size]byte]*oauth2.Token{}}
}

var _ dialect.Authorizer = Outbound{}

// Authorize adds a token where the secret is a credentials file; an API key is in the
// header already. It asks Google for one by rt when there is none that holds.
func (o Outbound) Authorize(ctx context.Context, rt http.RoundTripper, up *dialect.Upstream, secret string) *failure.Failure {
	if !isCredentials(secret) {
		return nil
	}
	if o.Tokens == nil {
		return &failure.Failure{Class: failure.ProviderAuth, Code: "no_token_source"}
	}
	token, err := o.Tokens.token(ctx, rt, secret)
	if err != nil {
		return unauthorized(err)
	}
	token.SetAuthHeader(&http.Request{Header: up.Header})
	return nil
}

// errCredentials is a file that is no credentials file of a kind that is taken.
var errCredentials = errors.New("gemini: not a service account's or a user's credentials")

// errTokenAddress is a file whose token address leads into the own network. The file may
// be an organization's own, and is no way to have the gateway ask around in there (Z1).
var errTokenAddress = errors.New("gemini: the address that makes tokens leads into the own network")

// unauthorized names why there is no token. What Google said of it stays here: it may
// quote the credentials.
func unauthorized(err error) *failure.Failure {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case errors.Is(err, errCredentials):
		return &failure.Failure{Class: failure.ProviderAuth, Code: "credentials_malformed"}
	case errors.Is(err, errTokenAddress):
		return &failure.Failure{Class: failure.ProviderAuth, Code: "token_address_refused"}
	case ok && refused.Response != nil && refused.Response.StatusCode < 500 && refused.Response.StatusCode != http.StatusTooManyRequests:
		return &failure.Failure{Class: failure.ProviderAuth, Code: "token_refused"}
	default:
		// Nothing was asked of the model yet, as when it cannot be reached.
		return &failure.Failure{Class: failure.ConnectError, Code: "token_unavailable"}
	}
}

// token is one that holds for a while.
func (t *Tokens) token(ctx context.Context, rt http.RoundTripper, secret string) (*oauth2.Token, error) {
	key := sha256.Sum256([]byte(secret))
	t.mu.Lock()
	known := t.byCredentials[key]
	t.mu.Unlock()
	left := time.Duration(0)
	if known != nil {
		left = time.Until(known.Expiry)
	}
	if left > refreshAhead {
		return known, nil
	}
	fetched := t.fetches.DoChan(string(key[:]), func() (any, error) {
		token, err := fetch(rt, secret)
		if err == nil {
			t.keep(key, token)
		}
		return token, err
	})
	if left > minTokenLife {
		return known, nil
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case r := <-fetched:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*oauth2.Token), nil
	}
}

// keep puts a token into the cache, in place of the one that ends first when it is
// full.
func (t *Tokens) keep(key [sha256.Size]byte, token *oauth2.Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.byCredentials[key]; !known && len(t.byCredentials) >= maxCredentials {
		first := key
		for k, held := range t.byCredentials {
			if first == key || held.Expiry.Before(t.byCredentials[first].Expiry) {
				first = k
			}
		}
		delete(t.byCredentials, first)
	}
	t.byCredentials[key] = token
}

// fetch asks Google for a token. The library's requests have no context of a call; the
// client's timeout bounds them.
func fetch(rt http.RoundTripper, secret string) (*oauth2.Token, error) {
	wire := &noticing{RoundTripper: rt}
	client := &http.Client{
		Transport: wire, Timeout: tokenTimeout,
		// A redirect would carry the assertion to an address that nobody configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, client)
	kind, ok := kinds[gjson.Get(secret, "type").Str]
	if !ok {
		return nil, errCredentials
	}
	credentials, err := google.CredentialsFromJSONWithType(ctx, []byte(secret), kind, scope)
	if err != nil {
		return nil, errCredentials
	}
	token, err := credentials.TokenSource.Token()
	if err != nil && wire.refused {
		return nil, errTokenAddress
	}
	if err != nil && !wire.asked {
		// It did not come to a request: there is something wrong with the file, such as a
		// key that is none.
		return nil, errCredentials
	}
	return token, err
}

// noticing notes that a request was made, and that it was not let through: the
// library's errors do not say.
type noticing struct {
	http.RoundTripper
	asked, refused bool
}

func (n *noticing) RoundTrip(r *http.Request) (*http.Response, error) {
	n.asked = true
	reply, err := n.RoundTripper.RoundTrip(r)
	if _, ok := errors.AsType[*network.RefusedError](err); ok {
		n.refused = true
	}
	return reply, err
}

package pgserver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// Rules: O8.
func TestSourcesAreTriedInThePromisedOrder_O8(t *testing.T) {
	var names []string
	for _, src := range sources() {
		names = append(names, src.name)
	}
	want := []string{"address", "local programs", "Docker", "download"}
	if !slices.Equal(names, want) {
		t.Fatalf("order %q, want %q", names, want)
	}
}

// Rules: O8.
func TestFindTakesTheFirstThatIsThere_O8(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name  string
		gives []error // one a source; nil is a server
		tried int
		err   error // nil with a server
	}{
		{"the first", []error{nil, nil}, 1, nil},
		{"the second when the first is not there", []error{unavailable("no"), nil, nil}, 2, nil},
		{"no fallback from one that is broken", []error{unavailable("no"), broken, nil}, 2, broken},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tried := 0
			var from []source
			for _, err := range test.gives {
				from = append(from, source{"fake", func(context.Context, Options) (*Server, error) {
					tried++
					if err != nil {
						return nil, err
					}
					return &Server{}, nil
				}})
			}
			server, err := find(t.Context(), Options{}, from)
			if !errors.Is(err, test.err) || (server == nil) != (test.err != nil) {
				t.Fatalf("got %v, %v; want error %v", server, err, test.err)
			}
			if tried != test.tried {
				t.Fatalf("%d sources tried, want %d", tried, test.tried)
			}
		})
	}
}

func TestNothingFoundSaysHowToGetOne(t *testing.T) {
	none := func(context.Context, Options) (*Server, error) { return nil, unavailable("not on this machine") }
	_, err := find(t.Context(), Options{AddressEnv: []string{"SOME_URL"}}, []source{{"Docker", none}})
	if _, ok := errors.AsType[*NotFoundError](err); !ok {
		t.Fatalf("got %v, want a NotFoundError", err)
	}
	for _, want := range []string{"set SOME_URL", "apt install", "Docker: not on this machine"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message does not say %q:\n%s", want, err)
		}
	}
}

func TestCancelledSearchStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Find(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
}

// Rules: O8.
func TestBadAddressFailsWithoutFallbackAndWithoutThePassword_O8(t *testing.T) {
	for name, value := range map[string]string{
		"not a URL":       "host=localhost password=hunter2",
		"broken URL":      "postgres://u:hunter2@[::1/db",
		"bad option":      "postgres://u:hunter2@localhost/db?sslmode=perhaps",
		"nobody listens":  "postgres://u:hunter2@127.0.0.1:1/db",
		"another program": "mysql://u:hunter2@localhost/db",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PGSERVER_TEST_URL", value)
			server, err := Find(t.Context(), Options{AddressEnv: []string{"PGSERVER_UNSET", "PGSERVER_TEST_URL"}})
			if err == nil {
				t.Fatalf("chose %s", server.Description())
			}
			if !strings.Contains(err.Error(), "PGSERVER_TEST_URL") {
				t.Errorf("the message does not name the variable: %v", err)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the message holds the password: %v", err)
			}
		})
	}
}

func TestNoDockerDaemonIsNotThere(t *testing.T) {
	t.Setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
	_, err := openContainer(t.Context(), Options{})
	if _, ok := errors.AsType[*unavailableError](err); !ok {
		t.Fatalf("got %v, want unavailable", err)
	}
}

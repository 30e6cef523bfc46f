package pgserver

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

func TestParseMajorVersion(t *testing.T) {
	for text, want := range map[string]int{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n": 15,
		"postgres (PostgreSQL) 17beta1":                          17,
		"postgres (PostgreSQL) 18devel":                          18,
		"postgres (PostgreSQL) 9.6.24":                           9,
		"postgres (GreengageDB) 16.1":                            0,
		"":                                                       0,
	} {
		if got := parseMajorVersion(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// fakePrograms writes shell scripts in place of the server programs.
func fakePrograms(t *testing.T, dir, version, initdb string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	scripts := map[string]string{"postgres": "echo 'postgres (PostgreSQL) " + version + "'", "initdb": initdb}
	for name, body := range scripts {
		if body == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// Rules: O8.
func TestOnlyCompleteAndRecentProgramsCount_O8(t *testing.T) {
	root := t.TempDir()
	dir := func(name string) string { return filepath.Join(root, name) }
	fakePrograms(t, dir("good"), "16.2", "true")
	fakePrograms(t, dir("old"), "14.9", "true")
	fakePrograms(t, dir("no initdb"), "16.2", "")
	found := probePrograms(t.Context(), []string{dir("absent"), dir("old"), dir("no initdb"), dir("good")})
	if len(found) != 1 || found[0] != (programs{dir("good"), 16}) {
		t.Fatalf("found %v, want the good one alone", found)
	}
}

func TestDataChoosesItsProgramVersion(t *testing.T) {
	installed := []programs{{"/new", 17}, {"/old", 15}}
	for made, want := range map[string]int{"": 17, "15": 15, "17": 17, "16": 0} {
		data := t.TempDir()
		if made != "" {
			if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(made+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := programsFor(data, installed)
		if got.major != want || (err == nil) != (want != 0) {
			t.Errorf("data of version %q: %v, %v; want version %d", made, got, err, want)
		}
	}
}

func TestFailedInitdbIsToldAndLeavesNoData(t *testing.T) {
	bin, dir := openTempDir(t), filepath.Join(openTempDir(t), "dev")
	fakePrograms(t, bin, "16.2", "echo 'no space left on device' >&2; exit 1")
	_, err := openCluster(t.Context(), Options{DataDir: dir}, []programs{{bin, 16}})
	if err == nil || !strings.Contains(err.Error(), "initdb failed: no space left on device") {
		t.Fatalf("got %v, want initdb's reason", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a failed initdb left data behind: %v", err)
	}
}

func TestDownloadedProgramsAreUsedAgain(t *testing.T) {
	repository := httptest.NewServer(http.NotFoundHandler())
	defer repository.Close()
	config := embeddedpostgres.DefaultConfig().BinaryRepositoryURL(repository.URL)
	cache := t.TempDir()

	_, err := download(t.Context(), cache, config)
	if _, ok := errors.AsType[*unavailableError](err); !ok {
		t.Fatalf("with nothing to download: %v, want unavailable", err)
	}
	bin := filepath.Join(cache, string(downloadVersion), "bin")
	fakePrograms(t, bin, "16.9", "true")
	found, err := download(t.Context(), cache, config)
	if err != nil || len(found) != 1 || found[0] != (programs{bin, 16}) {
		t.Fatalf("with programs in the cache: %v, %v", found, err)
	}
}

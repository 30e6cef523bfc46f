package pgserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// programs is one installed PostgreSQL: the directory that holds `postgres` and
// `initdb`, and its major version.
type programs struct {
	dir   string
	major int
}

func (p programs) path(program string) string { return filepath.Join(p.dir, program) }

// programGlobs are where packagers put the server programs, which are often not
// on PATH because several versions live side by side.
var programGlobs = []string{
	"/usr/lib/postgresql/*/bin",         // Debian, Ubuntu
	"/usr/pgsql-*/bin",                  // the PostgreSQL project's RPMs
	"/usr/lib/postgresql*/bin",          // SUSE, Alpine
	"/usr/libexec/postgresql*",          // Alpine
	"/opt/homebrew/opt/postgresql*/bin", // Homebrew on Apple silicon
	"/usr/local/opt/postgresql*/bin",    // Homebrew on Intel
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/opt/local/lib/postgresql*/bin", // MacPorts
	"/usr/local/pgsql/bin",           // built from source
}

// installedPrograms lists the usable PostgreSQL versions on this machine: what
// the user put on PATH first, then the others, newest first.
func installedPrograms(ctx context.Context) []programs {
	var first, rest []string
	if path, err := exec.LookPath("postgres"); err == nil {
		first = append(first, filepath.Dir(path))
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		first = append(first, strings.TrimSpace(string(out)))
	}
	for _, glob := range programGlobs {
		dirs, _ := filepath.Glob(glob) // the only error is a bad pattern
		rest = append(rest, dirs...)
	}
	others := probePrograms(ctx, rest)
	slices.SortStableFunc(others, func(a, b programs) int { return cmp.Compare(b.major, a.major) })
	return append(probePrograms(ctx, first), others...)
}

// probePrograms keeps the directories that hold a PostgreSQL new enough.
func probePrograms(ctx context.Context, dirs []string) []programs {
	var found []programs
	for _, dir := range dirs {
		p := programs{dir: dir}
		if info, err := os.Stat(p.path("initdb")); err != nil || info.IsDir() {
			continue // a client-only package, or a wrapper without the rest
		}
		out, err := exec.CommandContext(ctx, p.path("postgres"), "--version").Output()
		if err != nil {
			continue
		}
		p.major = parseMajorVersion(string(out))
		if p.major >= MinMajorVersion {
			found = append(found, p)
		}
	}
	return found
}

var versionText = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// parseMajorVersion reads "postgres (PostgreSQL) 15.18 (Debian 15.18-0)" and
// "17beta1"; 0 when the text is something else.
func parseMajorVersion(text string) int {
	match := versionText.FindStringSubmatch(text)
	if match == nil {
		return 0
	}
	major, _ := strconv.Atoi(match[1]) // digits; an absurd number reads as too old
	return major
}

// programsFor picks the programs for a data directory: the first when it is new,
// else those of the version that made it, because PostgreSQL does not read the
// data of another major version.
func programsFor(data string, installed []programs) (programs, error) {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return installed[0], nil
	}
	if err != nil {
		return programs{}, fmt.Errorf("cannot read the PostgreSQL data directory: %w", err)
	}
	made := strings.TrimSpace(string(text))
	for _, p := range installed {
		if strconv.Itoa(p.major) == made {
			return p, nil
		}
	}
	return programs{}, fmt.Errorf("the data in %s was made by PostgreSQL %s, which is not installed any more; install it again or delete the directory", data, made)
}

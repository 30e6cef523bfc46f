package event

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// update writes the goldens that are missing. It never overwrites one: what a
// release has stored is read for ever, so a changed golden is a changed past.
var update = flag.Bool("update", false, "write missing golden files")

// samples holds one event of every type, with every field filled by hand.
var samples = slices.Concat(requestSamples, catalogSamples, workerSamples, idempotencySamples, circuitSamples, billingSamples, reconciliationSamples)

func goldenFile(name string, version int) string {
	return filepath.Join("testdata", fmt.Sprintf("%s.v%d.json", name, version))
}

// Every type and version that was ever released has a golden file, and what is
// written today is byte for byte what the newest golden says (E8). When this
// fails, the wire form has changed: a new field is additive only if it may be
// absent; anything else is a new version with an upcaster, beside the old golden.
func TestEveryVersionHasAGolden_E8(t *testing.T) {
	if *update {
		writeMissing(t)
	}
	for name, version := range Types() {
		for v := 1; v <= version; v++ {
			if _, err := os.Stat(goldenFile(name, v)); err != nil {
				t.Errorf("%s version %d has no golden: add a sample and run go test ./domain/event -update", name, v)
			}
		}
	}
	for _, sample := range samples {
		encoded := Encode(sample)
		golden, err := os.ReadFile(goldenFile(encoded.Type, encoded.Version))
		if errors.Is(err, fs.ErrNotExist) {
			continue // reported above
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(bytes.TrimSpace(golden)), string(encoded.Data)); diff != "" {
			t.Errorf("%s version %d is no longer written as it was (-golden +now):\n%s", encoded.Type, encoded.Version, diff)
		}
	}
}

// Every golden, of every version, is still read; the newest one gives back the
// sample (E8).
func TestEveryGoldenIsStillRead_E8(t *testing.T) {
	bySample := map[string]Event{}
	for _, sample := range samples {
		encoded := Encode(sample)
		bySample[goldenFile(encoded.Type, encoded.Version)] = sample
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, file := range files {
		name, version := parseGolden(t, file)
		golden, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(name, version, golden)
		if err != nil {
			t.Errorf("%s cannot be read: %v", file, err)
			continue
		}
		want, newest := bySample[file]
		if !newest {
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is read as something else (-sample +read):\n%s", file, diff)
		}
	}
}

// A field that a sample leaves out has no golden.
//
// Rules: E8.
func TestSamplesAreFull_E8(t *testing.T) {
	sampled := map[string]bool{}
	for _, sample := range samples {
		name := Name(sample)
		if sampled[name] {
			t.Errorf("%s has two samples", name)
		}
		sampled[name] = true
		filled := map[string]bool{}
		fields(name, reflect.ValueOf(sample), filled)
		for path, full := range filled {
			if !full && !leftOut[path] {
				t.Errorf("the sample leaves %s out", path)
			}
		}
	}
	for name := range Types() {
		if !sampled[name] {
			t.Errorf("%s has no sample", name)
		}
	}
}

// leftOut are fields of shared objects that have events of their own and never
// travel in these.
var leftOut = map[string]bool{
	"deployment_defined.Deployment.Prices": true,
	"tenant_defined.Tenant.Aliases":        true,
	"tenant_defined.Tenant.RoutingRules":   true,
	"tenant_defined.Tenant.Budgets":        true,
	"tenant_defined.Tenant.Connections":    true,
	"tenant_defined.Tenant.Chains":         true,
	"tenant_defined.Tenant.Promotions":     true,
	"tenant_defined.Tenant.Webhooks":       true,
}

// fields notes for each field whether it is filled; over the elements of a list,
// whether it is in any of them (a rung has one target of three).
func fields(path string, v reflect.Value, filled map[string]bool) {
	switch {
	case v.Kind() == reflect.Struct && v.NumField() == 0:
	case v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct && v.Elem().NumField() > 0 && v.Elem().Type().Field(0).IsExported():
		fields(path, v.Elem(), filled)
	case v.Kind() == reflect.Struct && v.NumField() > 0 && v.Type().Field(0).IsExported() && !v.IsZero():
		for i := range v.NumField() {
			fields(path+"."+v.Type().Field(i).Name, v.Field(i), filled)
		}
	case v.Kind() == reflect.Slice && v.Len() > 0:
		filled[path] = true
		for i := range v.Len() {
			fields(path+"[]", v.Index(i), filled)
		}
	default:
		filled[path] = filled[path] || !v.IsZero()
	}
}

func parseGolden(t *testing.T, file string) (string, int) {
	t.Helper()
	var version int
	base := filepath.Base(file)
	name, rest, ok := strings.Cut(base, ".")
	if _, err := fmt.Sscanf(rest, "v%d.json", &version); err != nil || !ok || goldenFile(name, version) != file {
		t.Fatalf("%s is not <name>.v<version>.json", file)
	}
	return name, version
}

func writeMissing(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, sample := range samples {
		encoded := Encode(sample)
		f, err := os.OpenFile(goldenFile(encoded.Type, encoded.Version), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(append(encoded.Data, '\n')); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Rules: C15.
func TestUnknownTypeAndVersionAreTold_C15(t *testing.T) {
	for _, c := range []struct {
		name    string
		version int
	}{{"moon_phase_set", 1}, {"price_set", 99}, {"price_set", 0}, {"price_set", -1}, {"", 1}} {
		_, err := Decode(c.name, c.version, []byte(`{}`))
		var unknown *UnknownTypeError
		if !errors.As(err, &unknown) || unknown.Type != c.name || unknown.Version != c.version {
			t.Errorf("%s version %d: %v", c.name, c.version, err)
		}
	}
}

// A field of a newer release is no error (C15).
func TestUnknownFieldsAreRead_C15(t *testing.T) {
	if _, err := Decode("provider_removed", 1, []byte(`{"provider":"p","since":{"moon":1}}`)); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, sample := range samples {
		encoded := Encode(sample)
		f.Add(encoded.Type, encoded.Data)
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		first, err := Decode(name, 1, data)
		if err != nil {
			return
		}
		encoded := Encode(first)
		again, err := Decode(encoded.Type, encoded.Version, encoded.Data)
		if err != nil {
			t.Fatalf("what was read cannot be written and read again: %v", err)
		}
		if second := Encode(again); !bytes.Equal(encoded.Data, second.Data) {
			t.Fatalf("written twice, it differs:\n%s\n%s", encoded.Data, second.Data)
		}
	})
}

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

//go:embed demo.yaml
var demoYAML []byte

const (
	demoTenant = "demo"
	demoModel  = "demo"
)

// demoProviders are the providers of demo.yaml that are really the fake one.
var demoProviders = []string{"fake-a", "fake-b"}

// demoCredentials is what the fake provider is paid with. It takes anything; the
// names show which provider called in its ledger.
var demoCredentials = map[string]string{
	"SLUICE_DEMO_KEY_A": "demo-credential-a",
	"SLUICE_DEMO_KEY_B": "demo-credential-b",
}

// setDemoCredentials puts the demo's provider keys where the configuration says
// they are, unless the developer has (C14).
func setDemoCredentials() error {
	for name, value := range demoCredentials {
		if os.Getenv(name) != "" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// byDev is sluice dev in the log.
var byDev = eventstore.Meta{Actor: "sluice dev"}

// applyDemo configures an empty database, and in one that is configured only keeps
// the fake provider's address true: whatever the developer has changed since the
// first start stays.
func applyDemo(ctx context.Context, log config.Log, fakeURL string) error {
	state, err := live.Read(ctx, log)
	if err != nil {
		return err
	}
	want := state.Objects()
	if len(want.Providers) == 0 && len(want.Tenants) == 0 {
		file, err := config.Load(bytes.NewReader(demoYAML), "demo.yaml")
		if err != nil {
			return err
		}
		want = file.Objects
	}
	for i := range want.Providers {
		if slices.Contains(demoProviders, want.Providers[i].ID) {
			want.Providers[i].BaseURL = fakeURL + "/v1"
		}
	}
	return config.Apply(ctx, log, config.Diff(state, want), byDev, time.Now())
}

// demoKey is the key that the curl line shows: the one of the last start while it
// is good, else a new one. It is empty when the developer has removed the demo.
func demoKey(ctx context.Context, log config.Log, dir devDir) (string, error) {
	state, err := live.Read(ctx, log)
	if err != nil {
		return "", err
	}
	snapshot := state.Snapshot()
	if _, ok := snapshot.Tenant(demoTenant); !ok {
		return "", nil
	}
	kept, err := dir.read(demoKeyFile)
	if err != nil {
		return "", err
	}
	if key, ok := snapshot.KeyByHash(catalog.HashKey(kept)); ok && key.Usable(time.Now()) {
		return kept, nil
	}
	_, plaintext, err := config.CreateKey(ctx, log, config.KeyRequest{Tenant: demoTenant}, rand.Reader, byDev, time.Now())
	if err != nil {
		return "", err
	}
	return plaintext, dir.write(demoKeyFile, plaintext)
}

// demoCurl is a request that works as pasted.
func demoCurl(gateway, key string) string {
	return fmt.Sprintf(`curl -s %s/v1/chat/completions -H "Authorization: Bearer %s" -H "Content-Type: application/json" -d '{"model":"%s","messages":[{"role":"user","content":"Say hello"}]}'`,
		gateway, key, demoModel)
}

// apiCurl reads something of the tenant's API.
func apiCurl(gateway, key, path string) string {
	return fmt.Sprintf(`curl -s "%s%s" -H "Authorization: Bearer %s"`, gateway, path, key)
}

// baseURL is where a client on this machine reaches a listener.
func baseURL(address string) string {
	for _, any := range []string{"[::]:", "0.0.0.0:"} {
		if port, ok := strings.CutPrefix(address, any); ok {
			return "http://127.0.0.1:" + port
		}
	}
	return "http://" + address
}

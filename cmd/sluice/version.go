package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/migrations"
)

// Set by the linker (make build).
var (
	build  = "development"
	commit = ""
)

// versionInfo is what ran, provably (O11).
type versionInfo struct {
	Commit string `json:"commit"`
	Build  string `json:"build"`
	Go     string `json:"go"`
	// SchemaVersion and MigrationsDigest are those this build was made with; a
	// worker serves only on a database that recorded the same.
	SchemaVersion    int64  `json:"schema_version"`
	MigrationsDigest string `json:"migrations_digest"`
}

func thisVersion() versionInfo {
	latest := migrations.Latest()
	return versionInfo{
		Commit: commitID(), Build: build, Go: runtime.Version(),
		SchemaVersion: latest, MigrationsDigest: migrations.Digest(latest),
	}
}

// commitID is the linker's, or what `go build` found in the checkout.
func commitID() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Say what this binary was built from",
		Example: "  sluice version --output json",
		Args:    cobra.NoArgs,
	}
	output := addOutput(cmd)
	cmd.RunE = running(func(_ context.Context, cmd *cobra.Command, _ []string) error {
		v := thisVersion()
		if *output == outputJSON {
			return printJSON(cmd.OutOrStdout(), v)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "sluice %s, commit %s, %s\nschema version %d, migrations %s\n",
			v.Build, v.Commit, v.Go, v.SchemaVersion, v.MigrationsDigest)
		return err
	})
	return cmd
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
	"github.com/sluice-gateway/sluice/adapters/network"
)

func newFakeProvider() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fakeprovider",
		Short: "Run a model provider that does what it is told",
		Long:  fakeprovider.Help(),
		Example: "  sluice fakeprovider --listen 127.0.0.1:9090\n" +
			`  curl -s 127.0.0.1:9090/v1/chat/completions -d '{"model":"fake-503,ok","messages":[{"role":"user","content":"hi"}]}'`,
		Args: cobra.NoArgs,
	}
	listen := cmd.Flags().String("listen", "127.0.0.1:9090", "the address to listen on")
	script := cmd.Flags().String("script", "", "a file with a script, in JSON")
	standard := cmd.Flags().String("default", "", "the outcomes of models without a fault's name, ok if not set")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		options := fakeprovider.Options{Default: *standard}
		if err := readScript(*script, &options.Script); err != nil {
			return err
		}
		fake, err := fakeprovider.New(options)
		if err != nil {
			return err
		}
		listener, err := net.Listen("tcp", *listen)
		if err != nil {
			return &listenError{address: *listen, setting: "--listen", err: err}
		}
		stop := context.AfterFunc(ctx, func() { _ = fake.Close() })
		defer stop()
		fmt.Fprintf(cmd.OutOrStdout(), "fake provider on http://%s, base_url http://%[1]s/v1\nworkers may call it with %s=%[1]s\n", listener.Addr(), network.HostsEnv)
		return fake.Serve(listener)
	})
	return cmd
}

func readScript(path string, script *fakeprovider.Script) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s does not exist: name a script with --script", path)
	case err != nil:
		return err
	}
	if err := json.Unmarshal(text, script); err != nil {
		return fmt.Errorf("%s is no script: %w", path, err)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

func newCredentials() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "credentials",
		Short:   "Store, list and delete providers' keys, sealed in the database",
		Example: "  sluice credentials set anthropic-main k1 < key.txt",
	}
	group(cmd)
	cmd.AddCommand(newCredentialsSet(), newCredentialsList(), newCredentialsDelete(), newCredentialsRotate())
	return cmd
}

func newCredentialsSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set PROVIDER KEY | set --tenant TENANT CONNECTION | set [--tenant TENANT] --webhook WEBHOOK",
		Short: "Store the credential of a provider or a connection, or the secret of a webhook, read from standard input",
		Long: "The configuration has to say `stored: true` of it first. The secret is read from\n" +
			"standard input, because arguments can be seen by everyone on the machine; it is sealed\n" +
			"under SLUICE_MASTER_KEY and takes the place of the one before. Workers use it as soon\n" +
			"as they hear of it, within 15 s at the latest.",
		Example: "  sluice credentials set anthropic-main k1 < key.txt\n" +
			"  sluice credentials set --tenant acme own-key < key.txt\n" +
			"  sluice credentials set --webhook ops < secret.txt",
		Args: cobra.RangeArgs(0, 2),
	}
	output := addOutput(cmd)
	named := addCredentialOf(cmd)
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		of, err := named(args)
		if err != nil {
			return err
		}
		// One byte more than is taken, so that a longer one is refused and not cut.
		secret, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), config.MaxSecretBytes+1))
		if err != nil {
			return errors.New("standard input cannot be read")
		}
		return withVault(ctx, func(ctx context.Context, log *eventstore.Store, vault *secrets.Vault) error {
			held, err := config.StoreCredential(ctx, log, vault, of, secrets.Secret(secret), byOperator(), time.Now())
			if err != nil {
				return err
			}
			if *output == outputJSON {
				return printJSON(cmd.OutOrStdout(), held)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is stored%s\n", of, ending(held))
			return err
		})
	})
	return cmd
}

// addCredentialOf gives a command its --tenant and reads what it is about.
func addCredentialOf(cmd *cobra.Command) func(args []string) (catalog.CredentialOf, error) {
	tenant := cmd.Flags().String("tenant", "", "the organization whose connection or webhook it is")
	webhook := cmd.Flags().String("webhook", "", "the webhook whose secret it is")
	return func(args []string) (catalog.CredentialOf, error) {
		switch {
		case *webhook != "" && len(args) == 0:
			return catalog.WebhookSecret(*tenant, *webhook), nil
		case *webhook != "":
		case *tenant != "" && len(args) == 1:
			return catalog.CredentialOf{Tenant: *tenant, Key: args[0]}, nil
		case *tenant == "" && len(args) == 2:
			return catalog.CredentialOf{Provider: args[0], Key: args[1]}, nil
		}
		return catalog.CredentialOf{}, usagef("name a provider and its key, --tenant and its connection, or --webhook")
	}
}

func ending(held catalog.StoredCredential) string {
	if held.LastFour == "" {
		return ""
	}
	return ", ending in " + held.LastFour
}

func newCredentialsList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the credentials that are stored, by their last four characters",
		Example: "  sluice credentials list",
		Args:    cobra.NoArgs,
	}
	output := addOutput(cmd)
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
			state, err := live.Read(ctx, log)
			if err != nil {
				return err
			}
			if *output == outputJSON {
				list := append([]catalog.StoredCredential{}, state.Credentials()...)
				return printJSON(cmd.OutOrStdout(), map[string]any{"data": list, "next_cursor": nil})
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "CREDENTIAL\tENDS IN")
			for _, c := range state.Credentials() {
				fmt.Fprintf(table, "%s\t%s\n", c.CredentialOf, c.LastFour)
			}
			return table.Flush()
		})
	})
	return cmd
}

func newCredentialsDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete PROVIDER KEY | delete --tenant TENANT CONNECTION | delete [--tenant TENANT] --webhook WEBHOOK",
		Short: "Delete a stored credential",
		Long: "Always possible, whatever chain needs it: its routes are skipped from then on, and\n" +
			"nothing takes their place that was not configured.",
		Example: "  sluice credentials delete anthropic-main k1\n" +
			"  sluice credentials delete --tenant acme own-key",
		Args: cobra.RangeArgs(0, 2),
	}
	output := addOutput(cmd)
	named := addCredentialOf(cmd)
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		of, err := named(args)
		if err != nil {
			return err
		}
		return withVault(ctx, func(ctx context.Context, log *eventstore.Store, vault *secrets.Vault) error {
			if err := config.DeleteCredential(ctx, log, vault, of, byOperator(), time.Now()); err != nil {
				return err
			}
			if *output == outputJSON {
				return printJSON(cmd.OutOrStdout(), of)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is not held any more\n", of)
			return err
		})
	})
	return cmd
}

func newCredentialsRotate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Put every stored credential under the current master key",
		Long: "After SLUICE_MASTER_KEY was changed and the old one moved to\n" +
			"SLUICE_MASTER_KEY_PREVIOUS. It may be interrupted and run again.",
		Example: "  sluice credentials rotate",
		Args:    cobra.NoArgs,
	}
	output := addOutput(cmd)
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		return withVault(ctx, func(ctx context.Context, log *eventstore.Store, vault *secrets.Vault) error {
			state, err := live.Read(ctx, log)
			if err != nil {
				return err
			}
			done, err := vault.Rotate(ctx, state.Credentials())
			if err != nil {
				return err
			}
			if *output == outputJSON {
				err = printJSON(cmd.OutOrStdout(), done)
			} else {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d sealed again, %d were already\n", done.Resealed, done.Unchanged)
			}
			if err != nil || len(done.Unopened) == 0 {
				return err
			}
			return fmt.Errorf("%s and %d more cannot be opened with either master key: set the key that sealed them as %s, or store them again",
				done.Unopened[0], len(done.Unopened)-1, secrets.PreviousMasterKeyEnv)
		})
	})
	return cmd
}

// withVault runs a command's work on the log and the sealed credentials.
func withVault(ctx context.Context, work func(context.Context, *eventstore.Store, *secrets.Vault) error) error {
	masters, err := masterKeys()
	if err != nil {
		return err
	}
	return withLedger(ctx, func(ctx context.Context, log *eventstore.Store, pool *pgxpool.Pool) error {
		return work(ctx, log, &secrets.Vault{DB: pool, Masters: masters})
	})
}

// masterKeys are those of the environment or, for the private database of a running
// `sluice dev`, the one that dev made.
func masterKeys() (secrets.MasterKeys, error) {
	getenv := os.Getenv
	if db, err := findDatabase(); err == nil && db.dev && getenv(secrets.MasterKeyEnv) == "" {
		dev, err := devDir(dataDir()).read(masterKeyFile)
		if err != nil {
			return secrets.MasterKeys{}, err
		}
		getenv = func(name string) string {
			if name == secrets.MasterKeyEnv {
				return dev
			}
			return os.Getenv(name)
		}
	}
	return secrets.MasterKeysFrom(getenv)
}

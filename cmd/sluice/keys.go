package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

func newKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "keys",
		Short:   "Create, list and revoke callers' keys",
		Example: "  sluice keys create --tenant acme",
	}
	group(cmd)
	cmd.AddCommand(newKeysCreate(), newKeysList(), newKeysRevoke())
	return cmd
}

// createdKey is the JSON of `sluice keys create`; Key is never shown again.
type createdKey struct {
	ID  string `json:"id"`
	Key string `json:"key"`
}

func newKeysCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create --tenant T",
		Short: "Create a key for an organization and show it, once",
		Long: "Only a hash of the key is kept: it cannot be shown again. Without --scope a key may\n" +
			"do inference and read its organization's trail.",
		Example: "  sluice keys create --tenant acme\n" +
			"  sluice keys create --tenant acme --scope read --expires 720h --output json",
		Args: cobra.NoArgs,
	}
	output := addOutput(cmd)
	tenant := cmd.Flags().String("tenant", "", "the organization")
	scopes := cmd.Flags().StringSlice("scope", nil, "what the key may do: "+scopeNames())
	class := cmd.Flags().String("class", "", "confine the key to this traffic class")
	models := cmd.Flags().StringSlice("model", nil, "confine the key to these models or aliases")
	team := cmd.Flags().String("team", "", "the team whose limits the key is under")
	identity := cmd.Flags().String("identity", "", "the person or service whose limits the key is under")
	replyModel := cmd.Flags().String("reply-model", "", "what the model field of replies holds: requested or canonical (default: the organization's)")
	expires := cmd.Flags().String("expires", "", "when it ends: a time (2027-01-31, 2027-01-31T12:00:00Z) or from now (720h)")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		now := time.Now()
		want, err := keyRequest(*tenant, *scopes, *expires, now)
		if err != nil {
			return err
		}
		if *class != "" && len(*models) > 0 {
			return usagef("a key is confined to a class or to models, not both")
		}
		switch want.ReplyModel = catalog.ReplyModel(*replyModel); want.ReplyModel {
		case "", catalog.ReplyRequested, catalog.ReplyCanonical:
		default:
			return usagef("--reply-model is requested or canonical")
		}
		for flag, name := range map[string]string{"team": *team, "identity": *identity} {
			if name != "" && !catalog.ValidID(name) {
				return usagef("--%s holds something else than letters, digits and . _ @ : + -", flag)
			}
		}
		want.Class, want.Models, want.Team, want.Identity = *class, *models, *team, *identity
		return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
			key, plaintext, err := config.CreateKey(ctx, log, want, rand.Reader, byOperator(), now)
			if err != nil {
				return err
			}
			if *output == outputJSON {
				return printJSON(cmd.OutOrStdout(), createdKey{ID: key.ID, Key: plaintext})
			}
			// The key alone goes to stdout, so that KEY=$(sluice keys create ...) works.
			fmt.Fprintf(cmd.ErrOrStderr(), "key %s of tenant %s (%s); it is shown this once:\n", key.ID, key.Tenant, joinScopes(key.Scopes))
			_, err = fmt.Fprintln(cmd.OutOrStdout(), plaintext)
			return err
		})
	})
	return cmd
}

// keyRequest reads the flags of `keys create`.
func keyRequest(tenant string, scopes []string, expires string, now time.Time) (config.KeyRequest, error) {
	want := config.KeyRequest{Tenant: tenant}
	if tenant == "" {
		return want, usagef("name the organization: --tenant T")
	}
	known := map[string]bool{}
	for _, s := range catalog.Scopes() {
		known[string(s)] = true
	}
	for _, s := range scopes {
		if !known[s] {
			return want, usagef("there is no scope %q; there are %s", s, scopeNames())
		}
		want.Scopes = append(want.Scopes, catalog.Scope(s))
	}
	if expires == "" {
		return want, nil
	}
	at, err := parseExpiry(expires, now)
	if err != nil {
		return want, err
	}
	if !at.After(now) {
		return want, usagef("--expires %s is in the past", expires)
	}
	want.ExpiresAt = at.UTC()
	return want, nil
}

func parseExpiry(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), nil
	}
	return time.Time{}, usagef("--expires %q is neither a time like 2027-01-31T12:00:00Z nor a duration like 720h", text)
}

func scopeNames() string { return joinScopes(catalog.Scopes()) }

func joinScopes(scopes []catalog.Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// shownKey is a key in a list: never its hash, which could be tried against
// guesses.
type shownKey struct {
	ID        string          `json:"id"`
	Tenant    string          `json:"tenant"`
	Prefix    string          `json:"prefix"`
	Scopes    []catalog.Scope `json:"scopes"`
	State     string          `json:"state"`
	CreatedAt time.Time       `json:"created_at"`
	ExpiresAt time.Time       `json:"expires_at,omitzero"`
	RevokedAt time.Time       `json:"revoked_at,omitzero"`
}

func newKeysList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the keys there are, by their prefix",
		Example: "  sluice keys list --tenant acme",
		Args:    cobra.NoArgs,
	}
	output := addOutput(cmd)
	tenant := cmd.Flags().String("tenant", "", "only this organization's")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
			state, err := live.Read(ctx, log)
			if err != nil {
				return err
			}
			keys := shownKeys(state.Keys(), *tenant, time.Now())
			if *output == outputJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{"data": keys, "next_cursor": nil})
			}
			return printKeys(cmd.OutOrStdout(), keys)
		})
	})
	return cmd
}

func shownKeys(keys []catalog.Key, tenant string, now time.Time) []shownKey {
	list := []shownKey{}
	for _, k := range keys {
		if tenant != "" && k.Tenant != tenant {
			continue
		}
		state := "active"
		switch {
		case !k.RevokedAt.IsZero():
			state = "revoked"
		case !k.Usable(now):
			state = "expired"
		}
		list = append(list, shownKey{
			ID: k.ID, Tenant: k.Tenant, Prefix: k.Prefix, Scopes: k.Scopes, State: state,
			CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, RevokedAt: k.RevokedAt,
		})
	}
	return list
}

func printKeys(w io.Writer, keys []shownKey) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tTENANT\tKEY\tSCOPES\tSTATE\tCREATED\tEXPIRES")
	for _, k := range keys {
		expires := "never"
		if !k.ExpiresAt.IsZero() {
			expires = k.ExpiresAt.Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s...\t%s\t%s\t%s\t%s\n",
			k.ID, k.Tenant, k.Prefix, joinScopes(k.Scopes), k.State, k.CreatedAt.Format(time.RFC3339), expires)
	}
	return table.Flush()
}

func newKeysRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "End a key for good",
		Long: "Every worker stops accepting the key as soon as it hears of it, within 15 s at the\n" +
			"latest. Revoking a key again changes nothing.",
		Example: "  sluice keys revoke 019b3c1e-7c1a-7d58-9f3e-0a4c1c1f5b77",
		Args:    cobra.ExactArgs(1),
	}
	output := addOutput(cmd)
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		return withLog(ctx, func(ctx context.Context, log *eventstore.Store) error {
			if err := config.RevokeKey(ctx, log, args[0], byOperator(), time.Now()); err != nil {
				return err
			}
			if *output == outputJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{"id": args[0], "state": "revoked"})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "key %s is revoked\n", args[0])
			return err
		})
	})
	return cmd
}

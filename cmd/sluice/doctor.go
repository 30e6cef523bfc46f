package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/migrations"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

// verdict is how a check came out. A warning is something that serves and may
// surprise.
type verdict string

const (
	ok   verdict = "ok"
	warn verdict = "warn"
	fail verdict = "fail"
)

// finding is one line of the doctor's.
type finding struct {
	Check   string  `json:"check"`
	Verdict verdict `json:"verdict"`
	Detail  string  `json:"detail"`
}

const (
	// clockWarn is a difference between this machine's clock and the database's from
	// which on times in a trail look out of order; clockFail, keys expire wrongly.
	clockWarn = 2 * time.Second
	clockFail = time.Minute
)

func newDoctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a worker could serve here",
		Long: "Looks at the database, its schema and rights, the clocks, the configuration, the\n" +
			"providers' credentials (their names, never their values), the ports and the data\n" +
			"directory. Exits 1 if something would keep a worker from serving.",
		Example: "  DATABASE_URL=postgres://localhost/sluice sluice doctor\n  sluice doctor --output json",
		Args:    cobra.NoArgs,
	}
	output := addOutput(cmd)
	listen := addListenFlags(cmd)
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		findings := examineDatabase(ctx)
		public, admin := listen.resolve(false)
		findings = append(findings, examinePort("listen", public), examinePort("admin listen", admin), examineDataDir(dataDir()))
		if *output == outputJSON {
			if err := printJSON(cmd.OutOrStdout(), map[string]any{"ok": !anyFailed(findings), "checks": findings}); err != nil {
				return err
			}
		} else {
			printFindings(cmd.OutOrStdout(), findings)
		}
		if anyFailed(findings) {
			return errSilent
		}
		return nil
	})
	return cmd
}

func anyFailed(findings []finding) bool {
	for _, f := range findings {
		if f.Verdict == fail {
			return true
		}
	}
	return false
}

func printFindings(w io.Writer, findings []finding) {
	p := newPaint(w)
	colour := map[verdict]func(string) string{ok: p.green, warn: p.yellow, fail: p.red}
	for _, f := range findings {
		fmt.Fprintf(w, "%s  %-14s %s\n", colour[f.Verdict](fmt.Sprintf("%-4s", f.Verdict)), f.Check, f.Detail)
	}
}

// examineDatabase goes from the address to the catalog and stops where the next
// check would only repeat the failure.
func examineDatabase(ctx context.Context) []finding {
	db, err := findDatabase()
	if err != nil {
		return []finding{{"database", fail, err.Error()}}
	}
	status, err := migrations.State(ctx, db.url)
	if err != nil {
		return []finding{{"database", fail, inWords(db.about(err))}}
	}
	findings := []finding{{"database", ok, fmt.Sprintf("PostgreSQL %d.%d answers", status.ServerVersion/10000, status.ServerVersion%10000)}}
	if err := status.Check(); err != nil {
		return append(findings, finding{"schema", fail, inWords(db.about(err))})
	}
	findings = append(findings, finding{"schema", ok, fmt.Sprintf("version %d, migrations %.12s", status.Version, status.Digest)})
	conn, err := pgx.Connect(ctx, db.url)
	if err != nil {
		return append(findings, finding{"rights", fail, inWords(db.about(errors.Join(migrations.ErrUnreachable, err)))})
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	findings = append(findings, examineRights(ctx, conn), examineClock(ctx, conn))
	return append(findings, examineCatalog(ctx, db)...)
}

// examineRights asks PostgreSQL what the application's role may do to the log (E1).
func examineRights(ctx context.Context, conn *pgx.Conn) finding {
	var member, reads, writes, changes bool
	err := conn.QueryRow(ctx, `
		select pg_has_role(current_user, 'sluice_app', 'member'),
		       has_table_privilege('sluice_app', 'log_events', 'select'),
		       has_table_privilege('sluice_app', 'log_events', 'insert'),
		       has_table_privilege('sluice_app', 'log_events', 'update, delete, truncate')`).
		Scan(&member, &reads, &writes, &changes)
	switch {
	case err != nil:
		return finding{"rights", fail, "cannot be asked for (" + reason(err) + ")"}
	case !member:
		return finding{"rights", fail, "the user of DATABASE_URL is not in role sluice_app: grant sluice_app to it"}
	case !reads || !writes:
		return finding{"rights", fail, "role sluice_app cannot read and append to the log: grant select, insert on log_events to sluice_app"}
	case changes:
		return finding{"rights", fail, "role sluice_app may change events: revoke update, delete, truncate on log_events from sluice_app"}
	}
	return finding{"rights", ok, "the application can append events and cannot change them"}
}

// examineClock compares with the middle of a round trip.
func examineClock(ctx context.Context, conn *pgx.Conn) finding {
	before := time.Now()
	var there time.Time
	if err := conn.QueryRow(ctx, `select clock_timestamp()`).Scan(&there); err != nil {
		return finding{"clock", fail, "the database's cannot be read (" + reason(err) + ")"}
	}
	trip := time.Since(before)
	skew := there.Sub(before.Add(trip / 2)).Abs()
	f := finding{"clock", ok, fmt.Sprintf("%s from the database's", skew.Round(time.Millisecond))}
	switch {
	case skew >= clockFail:
		f.Verdict, f.Detail = fail, f.Detail+": set the clocks, keys would expire at the wrong time"
	case skew >= clockWarn:
		f.Verdict, f.Detail = warn, f.Detail+": set the clocks"
	}
	return f
}

func examineCatalog(ctx context.Context, db database) []finding {
	log, err := db.openLog(ctx)
	if err != nil {
		return []finding{{"catalog", fail, inWords(err)}}
	}
	defer func() { _ = closeStore(log) }()
	state, err := live.Read(ctx, log)
	if err != nil {
		return []finding{{"catalog", fail, "cannot be read: " + inWords(err)}}
	}
	if db.dev {
		// dev gives the demo's credentials to itself; this shell does not have them.
		if err := setDemoCredentials(); err != nil {
			return []finding{{"catalog", fail, err.Error()}}
		}
	}
	findings := append([]finding{catalogFinding(state)}, examineCredentials(state)...)
	findings = append(findings, examineBaseURLs(ctx, db, state)...)
	findings = append(findings, examineWebhooks(db, state)...)
	if stored := len(state.Credentials()); stored > 0 {
		findings = append(findings, examineMasterKey(stored))
	}
	return findings
}

// examineMasterKey looks for the key that opens what is stored.
func examineMasterKey(stored int) finding {
	masters, err := masterKeys()
	if err == nil {
		err = masters.Ready()
	}
	if err != nil {
		return finding{"master key", fail, fmt.Sprintf("%s; %s cannot be opened", err, plural(stored, "stored credential"))}
	}
	return finding{"master key", ok, plural(stored, "stored credential")}
}

func catalogFinding(state *catalog.State) finding {
	o := state.Objects()
	f := finding{"catalog", ok, fmt.Sprintf("%s, %s, %s, %s",
		plural(len(o.Models), "model"), plural(len(o.Deployments), "deployment"), plural(len(o.Tenants), "tenant"), plural(len(state.Keys()), "key"))}
	if n := len(state.PassedOver()); n > 0 {
		f.Verdict, f.Detail = warn, f.Detail+fmt.Sprintf("; %d kinds of events are of a newer release and passed over", n)
	}
	if len(o.Models) == 0 {
		f.Verdict, f.Detail = warn, f.Detail+": nothing is configured, run `sluice apply -f sluice.yaml`"
	}
	return f
}

// examineCredentials looks for every credential that the configuration names. A
// worker skips the routes of a provider that has none, so that is a warning; with
// no credential at all it can serve nothing.
func examineCredentials(state *catalog.State) []finding {
	providers := state.Objects().Providers
	env := secrets.NewEnv()
	findings := make([]finding, 0, len(providers))
	held := 0
	for i := range providers {
		p := &providers[i]
		var missing []string
		for _, k := range p.Keys {
			if _, held := state.Credential(p.CredentialOf(k.ID)); k.Stored && held {
				continue
			}
			m, isMissing := errors.AsType[*secrets.MissingError](lookup(env, p, k.ID))
			switch {
			case isMissing && m.Stored:
				missing = append(missing, "stored key "+k.ID)
			case isMissing:
				missing = append(missing, m.Env)
			}
		}
		held += len(p.Keys) - len(missing)
		f := finding{"provider " + p.ID, ok, plural(len(p.Keys), "credential") + " present"}
		if len(missing) > 0 || len(p.Keys) == 0 {
			f.Verdict, f.Detail = warn, "not set here: "+strings.Join(missing, ", ")
		}
		if len(missing) == len(p.Keys) {
			f.Detail += "; its routes are skipped"
		}
		findings = append(findings, f)
	}
	if held == 0 && len(providers) > 0 {
		findings = append(findings, finding{"credentials", fail, "no provider has one: set or store what is named above"})
	}
	return findings
}

// lookupTimeout bounds all names that the doctor resolves: a resolver that is away is
// not what it was asked for.
const lookupTimeout = 3 * time.Second

// examineBaseURLs finds the providers that a worker with this environment would not
// call, because their base URLs lead into the own network (Z1).
func examineBaseURLs(ctx context.Context, db database, state *catalog.State) []finding {
	guard, err := guardHere(db)
	if err != nil {
		return []finding{{"base URLs", fail, err.Error()}}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	var findings []finding
	providers := state.Objects().Providers
	for _, p := range providers {
		host := network.HostOf(p.BaseURL)
		if guard.Refuses(p.BaseURL) {
			findings = append(findings, finding{"base URL " + p.ID, warn, host + " leads into the own network; its routes are skipped: set " + network.HostsEnv + "=" + host + " for every worker"})
		} else if at, refused := guard.Lookup(ctx, p.BaseURL); refused {
			findings = append(findings, finding{"base URL " + p.ID, warn, host + " resolves to " + at.String() + " in the own network; its attempts fail: set " + network.HostsEnv + "=" + host + " for every worker"})
		}
	}
	switch {
	case len(providers) == 0:
		return nil
	case len(findings) == 0:
		return []finding{{"base URLs", ok, "none is refused"}}
	case len(findings) == len(providers):
		findings = append(findings, finding{"base URLs", fail, "every provider's is refused"})
	}
	return findings
}

func lookup(env *secrets.Env, p *catalog.Provider, key string) error {
	_, err := env.Lookup(p, key)
	return err
}

func examinePort(check string, a address) finding {
	l, err := net.Listen("tcp", a.value)
	if err == nil {
		return finding{check, ok, a.value + " is free"}.closing(l)
	}
	f := finding{check, fail, (&listenError{address: a.value, setting: a.setting, err: err}).Error()}
	if errors.Is(err, syscall.EADDRINUSE) {
		// Most likely the worker that somebody asks about.
		f.Verdict = warn
	}
	return f
}

func (f finding) closing(c io.Closer) finding {
	_ = c.Close()
	return f
}

func examineDataDir(path string) finding {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return finding{"data dir", ok, path + " is not there; only sluice dev needs it and makes it"}
	}
	if err != nil || !info.IsDir() {
		return finding{"data dir", fail, path + " is no directory: choose another with SLUICE_DATA_DIR"}
	}
	f, err := os.CreateTemp(path, "doctor.*")
	if err != nil {
		return finding{"data dir", fail, path + " cannot be written to: correct its rights or choose another with SLUICE_DATA_DIR"}
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	return finding{"data dir", ok, path + " can be written to"}
}

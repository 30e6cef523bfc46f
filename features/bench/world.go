package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/eventstore/pgserver"
)

// The two cores. What is measured has one to itself.
const (
	gatewayCore = 1
	loadCore    = 0
)

// models are what the provider is asked to do.
var models = map[string]string{
	"whole":  "fake-delay:20ms",
	"silent": "fake-stall:1",
	// No pause, but each chunk is a write of the provider's own.
	"burst":      "fake-words:50+gap:1ns",
	"burst-long": "fake-words:250+gap:1ns",
	"paced":      "fake-words:50+gap:5ms",
	"paced-long": "fake-words:250+gap:5ms",
}

// world is everything that runs during a measurement.
type world struct {
	sluice   string
	dir      string
	postgres *pgserver.Server
	url      string
	// postmaster is PostgreSQL's first process.
	postmaster int
	provider   *exec.Cmd
	serve      *exec.Cmd
	key        string

	providerAddress, gatewayAddress string
}

// openWorld starts PostgreSQL, the provider and the gateway, each on its core.
func openWorld(ctx context.Context, sluice string) (_ *world, err error) {
	if err := checkProc(); err != nil {
		return nil, err
	}
	if runtime.NumCPU() < 2 {
		return nil, errors.New("this needs two cores: one for what is measured and one for the load")
	}
	w := &world{sluice: sluice}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp("", "sluice-bench-"); err != nil {
		return nil, err
	}
	if err := w.startPostgres(ctx); err != nil {
		return nil, err
	}
	if err := pin(os.Getpid(), loadCore); err != nil {
		return nil, err
	}
	runtime.GOMAXPROCS(1)
	if err := w.startProvider(); err != nil {
		return nil, err
	}
	if err := w.configure(ctx); err != nil {
		return nil, err
	}
	return w, w.startGateway(ctx)
}

// pin puts a process, its threads and what it starts from now on on a core.
func pin(pid, core int) error {
	out, err := exec.Command("taskset", "-acp", strconv.Itoa(core), strconv.Itoa(pid)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("taskset: %w: %s", err, out)
	}
	return nil
}

func (w *world) startPostgres(ctx context.Context) (err error) {
	if w.postgres, err = pgserver.Find(ctx, pgserver.Options{Durable: true}); err != nil {
		return err
	}
	w.url = w.postgres.URL("")
	conn, err := pgx.Connect(ctx, w.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var data, fsync string
	if err := conn.QueryRow(ctx, "select current_setting('data_directory'), current_setting('fsync')").Scan(&data, &fsync); err != nil {
		return err
	}
	if fsync != "on" {
		return errors.New("PostgreSQL does not write durably (fsync is off): the figures would mean nothing")
	}
	file, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return fmt.Errorf("PostgreSQL must run on this machine to be put on a core: %w", err)
	}
	first, _, _ := strings.Cut(string(file), "\n")
	if w.postmaster, err = strconv.Atoi(first); err != nil {
		return err
	}
	for _, pid := range family(w.postmaster) {
		if err := pin(pid, gatewayCore); err != nil {
			return err
		}
	}
	return nil
}

// command runs the program on a core, with what it says on our stderr.
func (w *world) command(core int, args ...string) *exec.Cmd {
	cmd := exec.Command("taskset", append([]string{"-c", strconv.Itoa(core), w.sluice}, args...)...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+w.url, "BENCH_PROVIDER_KEY=sk-bench", network.HostsEnv+"="+w.providerAddress)
	cmd.Stderr = os.Stderr
	// Whoever ends us ends them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (w *world) startProvider() error {
	w.provider = w.command(loadCore, "fakeprovider", "--listen", "127.0.0.1:0")
	out, err := w.provider.StdoutPipe()
	if err != nil {
		return err
	}
	if err := w.provider.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the fake provider did not start: %w", err)
	}
	_, rest, _ := strings.Cut(line, "http://")
	w.providerAddress, _, _ = strings.Cut(rest, ",")
	return nil
}

// configuration is one route per model and one budget that every request meets.
func (w *world) configuration() string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nproviders:\n  - {id: fake, protocol: openai, base_url: \"http://%s/v1\", keys: [{id: k1, env: BENCH_PROVIDER_KEY}]}\n", w.providerAddress)
	b.WriteString("deployments:\n")
	for slug, upstream := range models {
		fmt.Fprintf(&b, "  - {id: %s@fake, provider: fake, upstream_model: %q, context: {total: 128000, max_output: 16000}, capabilities: [chat, tools], prices: {input: \"0.25\", output: \"1.00\", source: bench}}\n", slug, upstream)
	}
	b.WriteString("models:\n")
	for slug := range models {
		fmt.Fprintf(&b, "  - {slug: %s, exact_model: %[1]s, chain: [{deployment: %[1]s@fake}]}\n", slug)
	}
	b.WriteString("tenants:\n  - {id: bench, budgets: [{scope: organization, limit_usd: \"1000000.00\", per: month}]}\n")
	return b.String()
}

func (w *world) configure(ctx context.Context) error {
	file := filepath.Join(w.dir, "sluice.yaml")
	if err := os.WriteFile(file, []byte(w.configuration()), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{{"migrate"}, {"apply", "-f", file}} {
		if _, err := w.command(gatewayCore, args...).Output(); err != nil {
			return fmt.Errorf("sluice %s: %w", args[0], err)
		}
	}
	out, err := w.command(gatewayCore, "keys", "create", "--tenant", "bench", "--output", "json").Output()
	if err != nil {
		return fmt.Errorf("sluice keys create: %w", err)
	}
	var created struct{ Key string }
	if err := json.Unmarshal(out, &created); err != nil {
		return err
	}
	w.key = created.Key
	return ctx.Err()
}

// startGateway starts a fresh worker and waits until it asks for traffic.
func (w *world) startGateway(ctx context.Context) error {
	listen, admin, err := freeAddresses()
	if err != nil {
		return err
	}
	w.gatewayAddress = listen
	w.serve = w.command(gatewayCore, "serve", "--listen", listen, "--admin-listen", admin)
	w.serve.Stderr = quietly{}
	if err := w.serve.Start(); err != nil {
		return err
	}
	for range 200 {
		if resp, err := http.Get("http://" + admin + "/readyz"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("the gateway was not ready within 10 s")
}

// quietly shows what a worker warns of and not what it tells.
type quietly struct{}

func (quietly) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if !strings.Contains(line, `"level":"INFO"`) {
			_, _ = io.WriteString(os.Stderr, line)
		}
	}
	return len(p), nil
}

func freeAddresses() (listen, admin string, err error) {
	a, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer a.Close()
	b, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer b.Close()
	return a.Addr().String(), b.Addr().String(), nil
}

// restartGateway begins with a fresh worker's memory.
func (w *world) restartGateway(ctx context.Context) error {
	if err := end(w.serve); err != nil {
		return err
	}
	return w.startGateway(ctx)
}

// end asks a process to end and waits for it; taskset has become the program.
func end(cmd *exec.Cmd) error {
	if cmd == nil || cmd.Process == nil {
		return nil
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(15*time.Second, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() > 0 {
		return fmt.Errorf("%s ended with %d", cmd.Args[len(cmd.Args)-1], cmd.ProcessState.ExitCode())
	}
	return nil
}

func (w *world) close() error {
	err := errors.Join(end(w.serve), end(w.provider))
	if w.postgres != nil {
		err = errors.Join(err, w.postgres.Stop(context.Background()))
	}
	if w.dir != "" {
		err = errors.Join(err, os.RemoveAll(w.dir))
	}
	return err
}

func (w *world) describe(out io.Writer) {
	fmt.Fprintf(out, "%s\n%s, durable; gateway and PostgreSQL on core %d, load and provider on core %d\n\n",
		machine(), w.postgres.Description(), gatewayCore, loadCore)
}

func (w *world) direct(model string) target {
	return target{name: "direct", address: w.providerAddress, key: "sk-bench", model: models[model]}
}

func (w *world) gateway(model string) target {
	return target{name: "gateway", address: w.gatewayAddress, key: w.key, model: model}
}

package pgserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// openForTest starts a private cluster that the test's end stops.
func openForTest(t *testing.T, opts Options) *Server {
	t.Helper()
	server, err := openLocal(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

func execute(t *testing.T, server *Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL(""))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func query(t *testing.T, server *Server, sql string) (value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL(""))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestCommittedDataSurvivesKillAndRestart(t *testing.T) {
	server := openForTest(t, Options{Durable: true})
	execute(t, server, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")

	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if answers(t.Context(), server.URL("")) {
		t.Fatal("the server answers after Kill")
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute(t, server, "INSERT INTO kept VALUES (2)")
	started := query(t, server, "SELECT pg_postmaster_start_time()::text")
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if query(t, server, "SELECT pg_postmaster_start_time()::text") == started {
		t.Error("Restart did not restart")
	}
	if got := query(t, server, "SELECT sum(n)::text FROM kept"); got != "3" {
		t.Fatalf("sum %s after a kill and a restart, want 3", got)
	}
}

func TestKillWithSessionsOpenCanStartAtOnce(t *testing.T) {
	server := openForTest(t, Options{Durable: true})
	for range 5 {
		conn, err := pgx.Connect(t.Context(), server.URL(""))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
	}
	for range 3 {
		if err := errors.Join(server.Kill(), server.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDurableMeansFsync(t *testing.T) {
	for durable, want := range map[bool]string{true: "on", false: "off"} {
		server := openForTest(t, Options{Durable: durable})
		if got := query(t, server, "SHOW fsync"); got != want {
			t.Errorf("durable %t: fsync %s", durable, got)
		}
		if got := query(t, server, "SHOW synchronous_commit"); got != "on" {
			t.Errorf("durable %t: synchronous_commit %s", durable, got)
		}
	}
}

func TestStopRemovesTheTemporaryAndIsFinal(t *testing.T) {
	server := openForTest(t, Options{})
	base := server.backend.(*cluster).place.base
	if err := errors.Join(server.Stop(t.Context()), server.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(base); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind: %v", base, err)
	}
	for name, err := range map[string]error{
		"Start": server.Start(t.Context()), "Restart": server.Restart(t.Context()), "Kill": server.Kill(),
	} {
		if !errors.Is(err, errStopped) {
			t.Errorf("%s after Stop: %v", name, err)
		}
	}
}

func TestStopWithoutTimeStillEndsTheServer(t *testing.T) {
	server := openForTest(t, Options{})
	process := server.backend.(*cluster).process
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Stop(done); err != nil {
		t.Fatal(err)
	}
	if process.alive() {
		t.Fatal("the server runs after Stop")
	}
}

// Rules: O8.
func TestDataDirIsKeptAndServesOneAtATime_O8(t *testing.T) {
	opts := Options{DataDir: filepath.Join(openTempDir(t), "dev"), Durable: true}
	first := openForTest(t, opts)
	execute(t, first, "CREATE TABLE kept ()")

	_, err := openLocal(t.Context(), opts)
	inUse, ok := errors.AsType[*InUseError](err)
	if !ok || inUse.PID != os.Getpid() {
		t.Fatalf("a second server on the same data: %v, want InUseError with our pid", err)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := openForTest(t, opts)
	if got := query(t, second, "SELECT to_regclass('kept')::text"); got != "kept" {
		t.Fatalf("the data did not survive the first run: %q", got)
	}
}

// A ctrl-C goes to the whole foreground process group.
//
// Rules: O3.
func TestServerIsNotInOurProcessGroup_O3(t *testing.T) {
	server := openForTest(t, Options{})
	group, err := syscall.Getpgid(server.backend.(*cluster).process.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if group == syscall.Getpgrp() {
		t.Fatal("a ctrl-C for us would end the server too")
	}
}

func TestStalePIDFileOfAReusedPIDDoesNotBlockTheStart(t *testing.T) {
	dir := filepath.Join(openTempDir(t), "dev")
	server := openForTest(t, Options{DataDir: dir})
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	// The pid now belongs to a living process of the same account, as after the
	// restart of a container: PostgreSQL itself would refuse.
	c := server.backend.(*cluster)
	bystander := exec.Command("sleep", "600")
	bystander.SysProcAttr = childAttributes(c.place.account, syscall.SIGKILL)
	living, err := startProcess(bystander)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { living.signal(syscall.SIGKILL); <-living.done }()
	text := fmt.Sprintf("%d\n%s\n", bystander.Process.Pid, c.place.data)
	if err := os.WriteFile(pidFile(c.place.data), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.place.own(pidFile(c.place.data)); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !living.alive() {
		t.Fatal("a process that only had the pid was ended")
	}
}

// Rules: O8.
func TestServerOfAKilledOwnerIsStopped_O8(t *testing.T) {
	opts := Options{DataDir: filepath.Join(openTempDir(t), "dev"), Durable: true}
	orphan := openForTest(t, opts)
	execute(t, orphan, "CREATE TABLE kept ()")
	// What a kill -9 does where the kernel does not end the child: the lock is
	// gone, the server is not.
	old := orphan.backend.(*cluster)
	if err := old.place.lock.release(); err != nil {
		t.Fatal(err)
	}
	old.place.lock = nil

	server := openForTest(t, opts)
	if old.process.alive() {
		t.Fatal("the old server still runs")
	}
	if got := query(t, server, "SELECT to_regclass('kept')::text"); got != "kept" {
		t.Fatalf("the old server's data is gone: %q", got)
	}
}

func TestAnotherServersPIDIsNotOurs(t *testing.T) {
	first, second := openForTest(t, Options{}), openForTest(t, Options{})
	pid := first.backend.(*cluster).process.cmd.Process.Pid
	if !isPostmaster(pid, first.backend.(*cluster).place.data) {
		t.Error("our own server is not recognized")
	}
	if isPostmaster(pid, second.backend.(*cluster).place.data) {
		t.Error("a server on other data is taken for ours")
	}
	if isPostmaster(os.Getpid(), first.backend.(*cluster).place.data) {
		t.Error("a process that is no PostgreSQL is taken for one")
	}
}

// TestKilledOwnerLeavesUsableData kills a whole process that runs a cluster.
//
// Rules: O8.
func TestKilledOwnerLeavesUsableData_O8(t *testing.T) {
	dir := filepath.Join(openTempDir(t), "dev")
	owner := exec.CommandContext(t.Context(), os.Args[0])
	owner.Env = append(os.Environ(), helperDirEnv+"="+dir)
	stdin, err := owner.StdinPipe() // held open: its end would let the helper exit by itself
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || strings.HasPrefix(line, "error:") {
		t.Fatalf("the helper did not start: %s %v", line, err)
	}
	if _, err := openLocal(t.Context(), Options{DataDir: dir}); err == nil {
		t.Fatal("the directory of a living process was taken")
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // "signal: killed"

	if runtime.GOOS == "linux" { // elsewhere the next start below ends it
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if gone, err := awaitGone(t.Context(), pid, filepath.Join(dir, "data")); !gone {
			t.Fatalf("the server outlived its owner: %v", err)
		}
	}
	server := openForTest(t, Options{DataDir: dir, Durable: true})
	if got := query(t, server, "SELECT 'here'"); got != "here" {
		t.Fatal(got)
	}
	if got := query(t, server, "SHOW data_directory"); got != filepath.Join(dir, "data") {
		t.Fatalf("data in %s", got)
	}
}

// Rules: O8.
func TestGivenServerIsUsedAndLeftAlone_O8(t *testing.T) {
	running := openForTest(t, Options{})
	t.Setenv("PGSERVER_TEST_URL", running.URL("template1"))
	given, err := Find(t.Context(), Options{AddressEnv: []string{"PGSERVER_TEST_URL"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := query(t, given, "SELECT current_database()"); got != "template1" {
		t.Errorf("URL(\"\") is database %s, want the one in the address", got)
	}
	for name, err := range map[string]error{
		"Kill": given.Kill(), "Start": given.Start(t.Context()), "Restart": given.Restart(t.Context()),
	} {
		if !errors.Is(err, ErrNotOwned) {
			t.Errorf("%s: %v, want ErrNotOwned", name, err)
		}
	}
	if err := given.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !answers(t.Context(), running.URL("")) {
		t.Fatal("Stop of a given server stopped it")
	}
}

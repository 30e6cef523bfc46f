package pgserver

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// helperDirEnv turns the test binary into a process that runs a cluster in the
// named directory until its standard input ends, for the tests that kill it.
const helperDirEnv = "PGSERVER_HELPER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDirEnv); dir != "" {
		runHelper(dir)
	}
	goleak.VerifyTestMain(m)
}

func runHelper(dir string) {
	server, err := openLocal(context.Background(), Options{DataDir: dir, Durable: true})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(server.backend.(*cluster).process.cmd.Process.Pid)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

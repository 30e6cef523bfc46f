package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// orphanStopWait is how long a server left by a killed process may take for
	// each of: a fast shutdown, an immediate one, a kill.
	orphanStopWait = 10 * time.Second
	orphanPoll     = 20 * time.Millisecond
)

// stopOrphan ends a server that still runs on a data directory although the
// process that started it is gone (a kill -9). The caller holds the directory's
// lock, so nobody alive owns that server. It is stopped, not adopted: adopted, it
// would be nobody's child, with settings of the past and no way to be waited for.
func stopOrphan(ctx context.Context, data string) error {
	pid, ok := readPostmasterPID(data)
	if !ok || !isPostmaster(pid, data) {
		return nil
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("a PostgreSQL (pid %d) still runs on %s and cannot be stopped: %w", pid, data, err)
		}
		gone, err := awaitGone(ctx, pid, data)
		if err != nil || gone {
			return err
		}
	}
	return fmt.Errorf("a PostgreSQL (pid %d) still runs on %s and does not end", pid, data)
}

// awaitGone polls, because only a parent can wait for a process.
func awaitGone(ctx context.Context, pid int, data string) (bool, error) {
	poll := time.NewTicker(orphanPoll)
	defer poll.Stop()
	late := time.NewTimer(orphanStopWait)
	defer late.Stop()
	for isPostmaster(pid, data) {
		select {
		case <-poll.C:
		case <-late.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return true, nil
}

// clearStalePIDFile removes the postmaster.pid of a server that is gone.
// PostgreSQL does so itself unless the pid has been given to another process of
// the same account, which in a container, where pids start from 1 again, is the
// rule. It then refuses to start.
func clearStalePIDFile(data string) error {
	pid, ok := readPostmasterPID(data)
	if ok && isPostmaster(pid, data) {
		return fmt.Errorf("a PostgreSQL (pid %d) already runs on %s", pid, data)
	}
	err := os.Remove(pidFile(data))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove a stale postmaster.pid: %w", err)
	}
	return nil
}

func pidFile(data string) string { return filepath.Join(data, "postmaster.pid") }

// readPostmasterPID reads the pid from postmaster.pid, whose first lines are the
// pid and the data directory. ok is false when there is no usable file.
func readPostmasterPID(data string) (pid int, ok bool) {
	text, err := os.ReadFile(pidFile(data))
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(first))
	return pid, err == nil && pid > 1 // never signal init or a process group
}

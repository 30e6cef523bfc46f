package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a waiting process asks for a lock. A blocking flock would
// not hear its context.
const lockPoll = 100 * time.Millisecond

// InUseError says that another live process uses the data directory.
type InUseError struct {
	Dir string
	PID int // 0 when it did not say
}

func (e *InUseError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("another process (pid %d)", e.PID)
	}
	return fmt.Sprintf("%s uses the PostgreSQL data in %s; stop it or choose another directory", who, e.Dir)
}

// dirLock lets one process use a directory. It is a kernel lock on a file, so
// that it ends with the process however the process ends; a pid in a file would
// outlive a kill -9 and lock its owner out of the next run.
type dirLock struct{ file *os.File }

// lockDir takes the lock or returns [*InUseError] at once.
func lockDir(dir string) (*dirLock, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the PostgreSQL data directory: %w", err)
	}
	// The descriptor is close-on-exec: the server must not inherit the lock and
	// keep it for a parent that is gone.
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &InUseError{Dir: dir, PID: readPID(file)}
		}
		return nil, fmt.Errorf("cannot lock the PostgreSQL data directory %s: %w", dir, err)
	}
	if err := errors.Join(file.Truncate(0), writePID(file)); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("cannot write the lock of %s: %w", dir, err)
	}
	return &dirLock{file}, nil
}

// awaitLock takes the lock when its holder gives it back.
func awaitLock(ctx context.Context, dir string) (*dirLock, error) {
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		lock, err := lockDir(dir)
		if _, inUse := errors.AsType[*InUseError](err); !inUse {
			return lock, err
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *dirLock) release() error { return l.file.Close() }

func writePID(file *os.File) error {
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return err
}

func readPID(file *os.File) int {
	var text [20]byte // the longest int64
	n, _ := file.ReadAt(text[:], 0)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	return pid
}

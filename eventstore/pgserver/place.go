package pgserver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// socketPathMaxBytes is what fits sockaddr_un.sun_path on every unix: 104
	// bytes on macOS and the BSDs, 108 on Linux, less the final zero.
	socketPathMaxBytes = 103

	tempPrefix   = "sluice-pg-"
	socketPrefix = "sluice-socket-"

	// abandonedAfter is when an unlocked temporary directory is nobody's. Between
	// making one and locking it pass microseconds.
	abandonedAfter = time.Hour
)

// openDataDir is where root keeps a cluster whose wanted place the server's
// account cannot enter, as under /root. A variable for the tests alone.
var openDataDir = "/var/lib/sluice"

// place is where a cluster lives: base/lock, base/data (PGDATA) and the socket,
// in base/run if the path is short enough.
type place struct {
	base, data, socket string
	account            *account
	temporary          bool   // base is removed by close
	note               string // what a user would be surprised by
	lock               *dirLock
}

// newPlace prepares and locks the directories of a cluster. An empty dataDir
// means a temporary one.
func newPlace(dataDir string) (_ place, err error) {
	p := place{temporary: dataDir == ""}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.temporary {
		root := tempRoot()
		sweepAbandoned(root)
		p.base, err = os.MkdirTemp(root, tempPrefix)
	} else {
		p.base, err = filepath.Abs(dataDir)
	}
	if err != nil {
		return p, fmt.Errorf("cannot make a directory for PostgreSQL: %w", err)
	}
	if p.account, err = serverAccount(filepath.Join(p.base, "data")); err != nil {
		return p, err
	}
	if err := p.openBase(); err != nil {
		return p, err
	}
	if p.lock, err = lockDir(p.base); err != nil {
		return p, err
	}
	p.data = filepath.Join(p.base, "data")
	return p, p.makeSocketDir()
}

// openBase makes the base directory one that the server's account can enter,
// somewhere else if it has to.
func (p *place) openBase() error {
	if p.temporary {
		// os.MkdirTemp made it 0700 for us; the account has to get through.
		return os.Chmod(p.base, 0o711)
	}
	if blocked := p.account.blockedAt(p.base); blocked != "" {
		sum := sha256.Sum256([]byte(p.base))
		p.note = fmt.Sprintf("not in %s, because account %s cannot enter %s", p.base, p.account.name, blocked)
		p.base = filepath.Join(openDataDir, hex.EncodeToString(sum[:6]))
		if blocked := p.account.blockedAt(p.base); blocked != "" {
			return fmt.Errorf("account %s, which has to run PostgreSQL for root, can enter neither the data directory nor %s", p.account.name, blocked)
		}
		// The data's owner decides again: this may not be the first run here.
		var err error
		if p.account, err = serverAccount(filepath.Join(p.base, "data")); err != nil {
			return err
		}
	}
	return mkdirAllOpen(p.base)
}

// mkdirAllOpen is os.MkdirAll with mode 0711 whatever the umask: root's is often
// 077, which would shut the server's account out of what we just made.
func mkdirAllOpen(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := mkdirAllOpen(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("cannot make a directory for PostgreSQL: %w", err)
	}
	return os.Chmod(dir, 0o711)
}

// mkdirOwned makes a directory that the server's account owns and nobody else
// can read.
func (p *place) mkdirOwned(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Chmod(dir, 0o700), p.own(dir))
}

func (p *place) own(path string) error {
	if p.account == nil {
		return nil
	}
	return os.Chown(path, int(p.account.uid), int(p.account.gid))
}

// makeSocketDir chooses where the socket goes: beside the data, or under /tmp
// when that path is too long for a socket or has a comma, which the server would
// read as two directories.
func (p *place) makeSocketDir() error {
	dir := filepath.Join(p.base, "run")
	if p.socket = filepath.Join(dir, socket); len(p.socket) <= socketPathMaxBytes && !strings.ContainsAny(dir, `,"`) {
		return p.mkdirOwned(dir)
	}
	dir, err := os.MkdirTemp(tempRoot(), socketPrefix)
	if err != nil {
		return fmt.Errorf("cannot make a directory for PostgreSQL's socket: %w", err)
	}
	p.socket = filepath.Join(dir, socket)
	return p.own(dir)
}

// tempRoot is os.TempDir, or /tmp when TMPDIR is too deep for a socket or closed
// to the account that will run the server.
func tempRoot() string {
	dir := os.TempDir()
	longest := filepath.Join(dir, tempPrefix+"4294967295", "run", socket)
	if len(longest) > socketPathMaxBytes || strings.ContainsAny(dir, `,"`) {
		return "/tmp"
	}
	if as, err := serverAccount(""); err == nil && as.blockedAt(dir) != "" {
		return "/tmp"
	}
	return dir
}

// close gives the lock back and removes what was temporary.
func (p *place) close() error {
	var errs []error
	if dir := filepath.Dir(p.socket); p.socket != "" && filepath.Dir(dir) != p.base {
		errs = append(errs, os.RemoveAll(dir))
	}
	if p.temporary && p.base != "" {
		errs = append(errs, os.RemoveAll(p.base))
	}
	if p.lock != nil {
		errs = append(errs, p.lock.release())
	}
	return errors.Join(errs...)
}

// sweepAbandoned removes the temporary clusters of processes that were killed or
// ran into `go test -timeout`, some 40 MB each. What it cannot remove stays.
func sweepAbandoned(root string) {
	dirs, _ := filepath.Glob(filepath.Join(root, tempPrefix+"*")) // the only error is a bad pattern
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || int(owner(info).Uid) != os.Geteuid() || time.Since(info.ModTime()) < abandonedAfter {
			continue
		}
		lock, err := lockDir(dir)
		if err != nil {
			continue // in use, however old
		}
		if pid, ok := readPostmasterPID(filepath.Join(dir, "data")); !ok || !isPostmaster(pid, filepath.Join(dir, "data")) {
			_ = os.RemoveAll(dir)
		}
		_ = lock.release()
	}
}

package pgserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the unprivileged account a server runs under when we are root,
// because PostgreSQL refuses to run as root. nil means: as ourselves.
type account struct {
	name     string
	uid, gid uint32
}

func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// serverAccount chooses who runs the server on a data directory. Data that is
// already there is run by its owner, whoever that is: a directory made by a
// developer works again under sudo.
func serverAccount(dataDir string) (*account, error) {
	info, err := os.Stat(dataDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the PostgreSQL data directory: %w", err)
	}
	if os.Geteuid() != 0 {
		if info != nil && owner(info).Uid != uint32(os.Geteuid()) {
			return nil, fmt.Errorf("the PostgreSQL data in %s belongs to another account; use that account or choose another directory", dataDir)
		}
		return nil, nil
	}
	if info != nil && owner(info).Uid != 0 {
		st := owner(info)
		return &account{name: "uid " + strconv.Itoa(int(st.Uid)), uid: st.Uid, gid: st.Gid}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if a, err := lookupAccount(name); err == nil {
			return a, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither an account postgres nor nobody; run as another user")
}

func lookupAccount(name string) (*account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(errUID, errGID); err != nil {
		return nil, err
	}
	return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
}

// blockedAt returns the first directory on the way to path, path included, that
// the account may not enter; "" when it can get there. Directories that do not
// exist yet do not count. Permission bits are all it looks at.
func (a *account) blockedAt(path string) string {
	if a == nil {
		return ""
	}
	var chain []string
	for dir := path; ; dir = filepath.Dir(dir) {
		chain = append(chain, dir)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for i := len(chain) - 1; i >= 0; i-- {
		info, err := os.Stat(chain[i])
		if errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		if err != nil || !a.mayEnter(info) {
			return chain[i]
		}
	}
	return ""
}

func (a *account) mayEnter(dir fs.FileInfo) bool {
	st, perm := owner(dir), dir.Mode().Perm()
	switch {
	case st.Uid == a.uid:
		return perm&0o100 != 0
	case st.Gid == a.gid:
		return perm&0o010 != 0
	default:
		return perm&0o001 != 0
	}
}

func owner(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }

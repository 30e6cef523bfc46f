package pgserver

import (
	"fmt"
	"os"
	"path/filepath"
)

// isPostmaster reports whether the process is the PostgreSQL that runs on the
// data directory: its program is called postgres and, as every postmaster does,
// it made the data directory its working directory. A zombie has neither.
func isPostmaster(pid int, data string) bool {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil || filepath.Base(program) != "postgres" {
		return false
	}
	dir, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false
	}
	want, err := os.Stat(data)
	return err == nil && os.SameFile(dir, want)
}

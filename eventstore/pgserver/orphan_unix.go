//go:build unix && !linux

package pgserver

import (
	"os/exec"
	"strconv"
	"strings"
)

// isPostmaster reports whether the process is the PostgreSQL that runs on the
// data directory, by the arguments we start it with.
func isPostmaster(pid int, data string) bool {
	out, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres -D "+data+" ")
}

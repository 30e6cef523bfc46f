//go:build unix && !linux

package pgserver

import "syscall"

// childAttributes puts a program into its own process group, so that a ctrl-C
// meant for the parent does not end the database before the parent has drained.
// Only Linux can end a child with its parent; elsewhere the next run on the
// same data finds the server and stops it, see [stopOrphan].
func childAttributes(as *account, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as.credential()}
}

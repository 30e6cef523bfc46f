package pgserver

import "syscall"

// childAttributes puts a program into its own process group, so that a ctrl-C
// meant for the parent does not end the database before the parent has drained,
// and has the kernel end it when the parent is killed.
func childAttributes(as *account, parentDied syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: parentDied, Credential: as.credential()}
}

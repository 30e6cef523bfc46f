//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package edge

import "golang.org/x/sys/unix"

// There is no POLLRDHUP here: poll reports the peer's FIN as POLLHUP beside
// POLLIN, and POLLIN must be asked for to hear of it.
const hangupEvents = unix.POLLHUP | unix.POLLERR

func pollHangup(fd uintptr) bool {
	p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p[:], 0)
	return err == nil && n > 0 && p[0].Revents&hangupEvents != 0
}

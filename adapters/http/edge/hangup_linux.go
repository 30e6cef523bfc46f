package edge

import "golang.org/x/sys/unix"

// POLLRDHUP is the peer's FIN; without it a half-closed connection would show
// only as readable, like one with a pipelined request.
const hangupEvents = unix.POLLRDHUP | unix.POLLHUP | unix.POLLERR

func pollHangup(fd uintptr) bool {
	p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(p[:], 0)
	return err == nil && n > 0 && p[0].Revents&hangupEvents != 0
}

package pgserver

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	// logTailBytes is what is kept of a server's log, for the error when it
	// does not start. Nothing else reads the log, so nothing else is kept.
	logTailBytes = 16 << 10

	// orphanWait bounds the wait for the sessions' processes after the main
	// one is gone. They notice within milliseconds.
	orphanWait = 10 * time.Second
)

// process is a running server program and the goroutine that owns it.
type process struct {
	cmd  *exec.Cmd
	log  logTail
	done chan struct{} // closed when the program and all its children are gone
}

// startProcess runs cmd, which must not have been started.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	// A pipe, not a file: every child of the server inherits its writing end,
	// so Wait returns only when the last of them is gone. A new server on the
	// same data refuses to start before that ("pre-existing shared memory
	// block is still in use").
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	cmd.WaitDelay = orphanWait
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run starts the program and waits for it on one locked thread. Linux sends the
// parent-death signal when the THREAD that started the child ends; on a borrowed
// thread the runtime may end it at any time and the server with it.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	err := p.cmd.Start()
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // how it ended is in its log
	}
}

func (p *process) signal(sig os.Signal) { _ = p.cmd.Process.Signal(sig) } // the only error: it is gone

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// logTail is an io.Writer that keeps the last logTailBytes.
type logTail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *logTail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, text...)
	if over := len(t.kept) - logTailBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(text), nil
}

func (t *logTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.kept))
}

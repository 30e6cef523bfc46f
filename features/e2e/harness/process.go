package harness

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lastWords is how long a process that hangs may take to say where.
const lastWords = 5 * time.Second

// Process is a sluice that goes on until it is stopped.
type Process struct {
	cmd            *exec.Cmd
	stdout, stderr *output
	ended          chan struct{} // closed once it is gone
}

// Start runs a command line that goes on. A process that the test did not end
// itself is stopped with the test, and has to end well.
func Start(t testing.TB, env []string, args ...string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(Binary(t), args...), stdout: &output{}, stderr: &output{}, ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = environment(env), p.stdout, p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		switch {
		case p.isGone():
		case t.Failed(): // its own end would only add to the noise
			p.Kill()
		default:
			p.Stop(t)
		}
	})
	return p
}

// Stdout and Stderr are everything the process has said so far.
func (p *Process) Stdout() string { return p.stdout.String() }

// Stderr is Stdout's other half.
func (p *Process) Stderr() string { return p.stderr.String() }

// Await waits until the process has brought something about, and fails the test
// when it ends before that.
func (p *Process) Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	came := false
	ended := within(patience, func() bool { came = holds(); return came || p.isGone() })
	if !came {
		t.Fatalf("never: %s (the process has ended: %t)\n%s%s", what, ended, p.stdout, p.stderr)
	}
}

// Terminate asks the process to stop and does not wait.
func (p *Process) Terminate(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("the process is gone already: %v\n%s", err, p.stderr)
	}
}

// Stop asks the process to stop and checks that it ends well.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	p.Terminate(t)
	p.WaitEnded(t)
}

// WaitEnded waits for a process that was asked to stop; it has to exit with 0.
func (p *Process) WaitEnded(t testing.TB) {
	t.Helper()
	if !within(patience, p.isGone) {
		// Its last words are where it hangs.
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		within(lastWords, p.isGone)
		p.Kill()
		t.Fatalf("the process did not end:\n%s", p.stderr)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the process ended with exit %d:\n%s", code, p.stderr)
	}
}

// Kill ends the process as a crash would (kill -9) and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Signal(os.Kill) // the only error: it is gone
	<-p.ended
}

func (p *Process) isGone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// output is what a process says, readable while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps what was said.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String is all that was said.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Command sluice is the gateway and everything an operator does with it.
//
// One file is one command. worker.go is the composition root: the one place where
// the pieces of a running worker are made, joined and ended; serve and dev both
// run it. What every command shares is in root.go (the command tree), exit.go
// (exit codes and what an error says), print.go (output, colour, progress) and
// database.go (how a command reaches the log).
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// The first signal asks for a good end, the second one ends the process at once
	// (O3). Giving the second back to the system's default would lose one that
	// arrives while that is being done.
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitFailed)
	}()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return report(stderr, cmd, err)
}

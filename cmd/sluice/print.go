package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// outputFormat is the value of --output.
type outputFormat string

const (
	outputText outputFormat = "text"
	outputJSON outputFormat = "json"
)

func (f *outputFormat) String() string { return string(*f) }
func (f *outputFormat) Type() string   { return "json|text" }

func (f *outputFormat) Set(value string) error {
	switch outputFormat(value) {
	case outputText, outputJSON:
		*f = outputFormat(value)
		return nil
	}
	return fmt.Errorf("must be json or text")
}

// addOutput gives a command that prints data its --output.
func addOutput(cmd *cobra.Command) *outputFormat {
	format := outputText
	cmd.Flags().Var(&format, "output", "how the result is printed")
	return &format
}

// printJSON prints one JSON value, indented for eyes, with a final newline.
func printJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}

// plainWidth is how wide a drawing is that goes to a file or a pipe.
const plainWidth = 100

// terminalWidth is a terminal's width in columns.
func terminalWidth(w io.Writer) int {
	if file, ok := w.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			return int(size.Col)
		}
	}
	return plainWidth
}

// isTerminal reports whether a writer is a terminal. Asking for the window's size
// is the question that /dev/null, a character device as well, does not answer.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// paint colours text for terminals; it leaves it alone elsewhere and where
// NO_COLOR is set (no-color.org).
type paint bool

func newPaint(w io.Writer) paint {
	return paint(isTerminal(w) && os.Getenv("NO_COLOR") == "")
}

func (p paint) code(sgr, text string) string {
	if !p {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

func (p paint) bold(text string) string   { return p.code("1", text) }
func (p paint) dim(text string) string    { return p.code("2", text) }
func (p paint) red(text string) string    { return p.code("31", text) }
func (p paint) green(text string) string  { return p.code("32", text) }
func (p paint) yellow(text string) string { return p.code("33", text) }

const (
	// progressAfter keeps quick work quiet.
	progressAfter = time.Second
	// progressEvery is as often as a person can read.
	progressEvery = 100 * time.Millisecond
)

// progress shows on a terminal how far slow work has come, and shows nothing
// anywhere else.
type progress struct {
	w            io.Writer
	on, shown    bool
	began, drawn time.Time
}

func newProgress(cmd *cobra.Command) *progress {
	w := cmd.ErrOrStderr()
	return &progress{w: w, on: isTerminal(w), began: time.Now()}
}

// show draws over the line that was drawn before.
func (p *progress) show(format string, args ...any) {
	now := time.Now()
	if !p.on || now.Sub(p.began) < progressAfter || now.Sub(p.drawn) < progressEvery {
		return
	}
	p.shown, p.drawn = true, now
	fmt.Fprintf(p.w, "\r\x1b[K"+format, args...)
}

// done clears the line for what is printed next.
func (p *progress) done() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

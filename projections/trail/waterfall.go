package trail

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/tidwall/gjson"
)

const (
	// minWidth keeps a bar of a few columns beside its words.
	minWidth = 60
	// maxWidth: beyond it the eye loses the line.
	maxWidth = 160
	// leftShare is the part of the width that the words get, in percent.
	leftShare = 60
)

// Render draws a trail for a terminal of the given width, one line an entry, with
// time going to the right at one scale for all (X5). An attempt is a bar from its
// reservation to its end: `=` while nothing has come, `#` from the first output on,
// `>` at the end of one that still runs; anything else is a mark `|` at its moment.
func Render(t Trail, width int, colour bool) string {
	width = min(max(width, minWidth), maxWidth)
	w := waterfall{left: width * leftShare / 100, paint: colour, spans: spansOf(t.Entries)}
	w.bar = width - w.left - 2
	if n := len(t.Entries); n > 0 {
		w.start, w.length = t.Entries[0].At, t.Entries[n-1].At.Sub(t.Entries[0].At)
	}
	w.header(t)
	for _, e := range t.Entries {
		w.line(e)
	}
	return w.out.String()
}

type waterfall struct {
	out       strings.Builder
	left, bar int // columns
	paint     bool
	start     time.Time
	length    time.Duration
	spans     map[int64]span
}

func (w *waterfall) header(t Trail) {
	outcome := "running"
	if t.Outcome != nil {
		outcome = string(*t.Outcome)
	}
	model := t.RequestedModel
	if t.CanonicalModel != "" && t.CanonicalModel != model {
		model += " -> " + t.CanonicalModel
	}
	fmt.Fprintf(&w.out, "%s  %s\n", t.RequestID, clean(t.Tenant))
	fmt.Fprintf(&w.out, "%s  %s, %s, fallback depth %d, %s\n\n",
		clean(model), outcome, plural(t.Attempts, "attempt"), t.FallbackDepth, ms(w.length))
}

// line is one entry: its number, its moment, its words and its place in time.
func (w *waterfall) line(e Entry) {
	l := labelOf(e)
	left := fmt.Sprintf("%3d %8s  %s", e.Seq, ms(e.At.Sub(w.start)), clean(l.text))
	bar := strings.TrimRight(w.place(e), " ")
	if bar == "" {
		w.out.WriteString(w.coloured(l.tone, clip(left, w.left)) + "\n")
		return
	}
	w.out.WriteString(w.coloured(l.tone, pad(clip(left, w.left), w.left)) + "  " + bar + "\n")
}

// place draws the bar of an attempt, or the mark of anything else.
func (w *waterfall) place(e Entry) string {
	cells := []byte(strings.Repeat(" ", w.bar))
	if e.Event != "attempt_reserved" {
		cells[w.column(e.At)] = '|'
		return string(cells)
	}
	s := w.spans[gjson.GetBytes(e.Fields, "attempt").Int()]
	from, to := w.column(e.At), w.column(s.end)
	for i := from; i <= to; i++ {
		cells[i] = '='
		if !s.output.IsZero() && i >= w.column(s.output) {
			cells[i] = '#'
		}
	}
	if !s.over {
		cells[to] = '>'
	}
	return string(cells)
}

// column is where a moment stands on the scale.
func (w *waterfall) column(at time.Time) int {
	if w.length <= 0 {
		return 0
	}
	// Observed times come from one worker's clock, but an orphan's end from another's.
	part := float64(at.Sub(w.start)) / float64(w.length)
	return min(max(int(part*float64(w.bar-1)), 0), w.bar-1)
}

// span is when an attempt gave its first output and when it ended.
type span struct {
	output, end time.Time
	over        bool
}

// spansOf measures the attempts. What still runs ends, for now, at the last entry.
func spansOf(entries []Entry) map[int64]span {
	spans := map[int64]span{}
	for _, e := range entries {
		attempt := gjson.GetBytes(e.Fields, "attempt").Int()
		s, begun := spans[attempt]
		switch e.Event {
		case "attempt_reserved":
			s, begun = span{end: entries[len(entries)-1].At}, true
		case "attempt_committed":
			s.output = e.At
		case "attempt_failed", "attempt_throttled", "attempt_settled":
			if !s.over {
				s.end, s.over = e.At, true
			}
		default:
			continue
		}
		if begun {
			spans[attempt] = s
		}
	}
	return spans
}

// coloured paints a line's words; without colour they are as they are.
func (w *waterfall) coloured(t tone, text string) string {
	code := map[tone]string{good: "32", warning: "33", bad: "31"}[t]
	if !w.paint || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func ms(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// clean keeps names that a caller made up from steering the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

func clip(s string, columns int) string {
	r := []rune(s)
	if len(r) <= columns {
		return s
	}
	return string(r[:columns-1]) + "…"
}

func pad(s string, columns int) string {
	return s + strings.Repeat(" ", max(0, columns-len([]rune(s))))
}

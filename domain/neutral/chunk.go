package neutral

import "github.com/sluice-gateway/sluice/domain/usage"

// Chunk is one frame of a provider's stream: its data exactly as received and
// what it says. A frame may say several things: text, a stop reason and usage at
// once.
//
// A chunk belongs to the stream that produced it: Raw and Events are valid until
// the next read.
type Chunk struct {
	// Dialect is what Raw is written in.
	Dialect Dialect
	// Name is the frame's event name where the dialect has them.
	Name string
	Raw  []byte
	// Events are what the frame says, in order.
	Events []Event
}

// Semantic reports whether any event of the chunk is output (S1).
func (c *Chunk) Semantic() bool {
	for i := range c.Events {
		if c.Events[i].Semantic() {
			return true
		}
	}
	return false
}

// Generation reports whether any event of the chunk resets the idle limit (W11).
func (c *Chunk) Generation() bool {
	for i := range c.Events {
		if c.Events[i].Generation() {
			return true
		}
	}
	return false
}

// Answer is a whole reply.
type Answer struct {
	Dialect Dialect
	// Raw is the reply's body in Dialect.
	Raw []byte
	// Output is the reply's content, decoded only where Raw is not in the caller's
	// dialect.
	Output []Part
	Usage  usage.Usage
	Stop   StopReason
	// FirstOutput is the kind of the first output in the reply, Opaque when there
	// is none.
	FirstOutput Kind
	// ToolCalls is how many calls the reply asks for.
	ToolCalls int
	// Seal is the last one of the reply (K4).
	Seal OpaqueReasoning
	// OutputBytes is the size of all output text in bytes, for an estimate where
	// the provider reported no usage (S6).
	OutputBytes int64
	// Empty says that the reply is well formed and has no output (W8).
	Empty bool
	// Streamed says that the reply was put together from a stream (S11).
	Streamed bool
}

// Tally is what a stream has said so far. The zero value is an empty stream.
type Tally struct {
	// OutputBytes counts delivered text, reasoning, refusals and tool arguments:
	// what an estimate of a broken stream's output rests on (S6).
	OutputBytes int64
	// OutputEvents counts the events that carried them. Most providers send a
	// token an event, so this and OutputBytes bracket the token count.
	OutputEvents int64
	ToolCalls    int
	// FirstOutput is the kind of the first semantic event, Opaque before it.
	FirstOutput Kind
	// Stop is the last stop reason, StopNone while the answer is running.
	Stop StopReason
	// Usage is the last value reported, field by field.
	Usage    usage.Usage
	HasUsage bool
	// Seal is the last one that came: what tells later whose reasoning it was (K4).
	Seal OpaqueReasoning
}

// Add counts one chunk.
func (t *Tally) Add(c *Chunk) {
	for i := range c.Events {
		t.event(&c.Events[i])
	}
}

func (t *Tally) event(e *Event) {
	if e.Semantic() {
		if t.FirstOutput == Opaque {
			t.FirstOutput = e.Kind
		}
		t.OutputEvents++
		t.OutputBytes += int64(len(e.Text))
	}
	switch e.Kind {
	case ToolCallStart:
		t.ToolCalls++
		t.OutputBytes += int64(len(e.Tool.Name))
	case Stop:
		t.Stop = e.Stop
	case Usage:
		t.Usage = LastUsage(t.Usage, e.Usage)
		t.HasUsage = true
	case ReasoningSeal:
		t.Seal = e.Seal.clone()
	}
}

// Committed reports whether output has been seen (S1).
func (t *Tally) Committed() bool { return t.FirstOutput != Opaque }

// Finished reports whether the answer has said why it ended.
func (t *Tally) Finished() bool { return t.Stop != StopNone }

// LastUsage is a usage after a newer report: each field that the newer one has
// replaces the older. Providers report cumulatively, so adding would count twice,
// and a later report that leaves a field out does not take back what was said.
func LastUsage(older, newer usage.Usage) usage.Usage {
	last := func(o, n usage.Count) usage.Count {
		if n.State == usage.Absent || (n.State == usage.Null && o.Known()) {
			return o
		}
		return n
	}
	return usage.Usage{
		Input:        last(older.Input, newer.Input),
		CachedInput:  last(older.CachedInput, newer.CachedInput),
		CacheWrite5m: last(older.CacheWrite5m, newer.CacheWrite5m),
		CacheWrite1h: last(older.CacheWrite1h, newer.CacheWrite1h),
		Output:       last(older.Output, newer.Output),
		Reasoning:    last(older.Reasoning, newer.Reasoning),
		AudioInput:   last(older.AudioInput, newer.AudioInput),
		ImageInput:   last(older.ImageInput, newer.ImageInput),
		AudioOutput:  last(older.AudioOutput, newer.AudioOutput),
		ImageOutput:  last(older.ImageOutput, newer.ImageOutput),
	}
}

// Package usage holds what a provider says an attempt consumed, in one shape for
// every dialect.
package usage

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Count is a token count as it was reported. Reported zero, JSON null and an
// absent field are three different things (M4): `x or estimate` on a plain
// integer turns a reported zero into a charge.
type Count struct {
	N     int64
	State State
}

// State says how a Count came to be.
type State uint8

// The states of a Count. The zero value is Absent.
const (
	Absent State = iota
	Null
	Reported
)

// MaxCount is more tokens than any attempt can use: a report beyond it is nonsense. It
// keeps what ledgers and windows add up far inside an int64.
const MaxCount = 1_000_000_000

// Of is a reported count.
func Of(n int64) Count { return Count{N: n, State: Reported} }

// Known reports whether the provider gave a number.
func (c Count) Known() bool { return c.State == Reported }

// Or is the reported number, or other when there is none.
func (c Count) Or(other int64) int64 {
	if c.Known() {
		return c.N
	}
	return other
}

// IsZero drops an absent count from JSON (omitzero), so that absent stays absent
// in the log.
func (c Count) IsZero() bool { return c.State == Absent }

// MarshalJSON writes the number, or null for Null and Absent.
func (c Count) MarshalJSON() ([]byte, error) {
	if !c.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, c.N, 10), nil
}

// Else is the count, or another where it says nothing: null is kept before what says
// nothing either.
func (c Count) Else(other Count) Count {
	if c.Known() || (c.State == Null && !other.Known()) {
		return c
	}
	return other
}

// UnmarshalJSON reads a number or null. A field that is not there leaves Absent.
func (c *Count) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		*c = Count{State: Null}
		return nil
	}
	var n int64
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	*c = Of(n)
	return nil
}

// Usage is one attempt's consumption in tokens, in OpenAI's sense: cached and
// written tokens are inside Input, reasoning is inside Output. Decoders of
// dialects that count otherwise convert before they build one (M4).
type Usage struct {
	Input        Count `json:"input_tokens,omitzero"`
	CachedInput  Count `json:"cached_input_tokens,omitzero"`
	CacheWrite5m Count `json:"cache_write_5m_tokens,omitzero"`
	CacheWrite1h Count `json:"cache_write_1h_tokens,omitzero"`
	Output       Count `json:"output_tokens,omitzero"`
	Reasoning    Count `json:"reasoning_tokens,omitzero"`
	// What of Input and Output is not text.
	AudioInput  Count `json:"audio_input_tokens,omitzero"`
	ImageInput  Count `json:"image_input_tokens,omitzero"`
	AudioOutput Count `json:"audio_output_tokens,omitzero"`
	ImageOutput Count `json:"image_output_tokens,omitzero"`
}

// Usable reports whether the usage can settle a completed answer. One that says
// zero input and zero output is unknown, not free (M4).
func (u Usage) Usable() bool {
	if !u.Input.Known() || !u.Output.Known() {
		return false
	}
	return u.Input.N > 0 || u.Output.N > 0
}

// Basis says what a settlement rests on.
type Basis string

// The bases of a settlement (M4, M6, S6).
const (
	BasisReported  Basis = "reported"
	BasisEstimated Basis = "estimated"
	BasisUnknown   Basis = "unknown"
)

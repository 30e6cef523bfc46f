package neutral

import "github.com/sluice-gateway/sluice/domain/usage"

// Dialect is a wire format of requests and answers, whoever speaks it.
type Dialect string

// The dialects of P1 and P2.
const (
	Chat      Dialect = "chat"
	Responses Dialect = "responses"
	Messages  Dialect = "messages"
	Converse  Dialect = "converse"
	Generate  Dialect = "generate"
	// Embeddings is OpenAI's, whose answers are vectors and come whole.
	Embeddings Dialect = "embeddings"
)

// Kind is what an event says.
type Kind uint8

// The kinds of events. Opaque is the zero value: a part of a frame that the
// gateway has no word for and passes on as it came.
const (
	Opaque Kind = iota
	// Start is framing: a role chunk, message_start, response.created.
	Start
	Text
	// Reasoning is exposed reasoning. Reasoning that a provider withholds or sends
	// only encrypted is Opaque.
	Reasoning
	ToolCallStart
	ToolCallDelta
	ToolCallEnd
	Image
	Refusal
	// Structure is output that is neither text nor a call but that a caller acts
	// on: audio, a server tool's result.
	Structure
	Usage
	Stop
	Error
	Ping
	// ReasoningSeal is the signature or the encrypted content that closes a piece of
	// reasoning. It is no output, and only its issuer can read it (K4).
	ReasoningSeal
)

var kindNames = [...]string{
	Opaque: "opaque", Start: "start", Text: "text", Reasoning: "reasoning",
	ToolCallStart: "tool_call", ToolCallDelta: "tool_call", ToolCallEnd: "tool_call",
	Image: "image", Refusal: "refusal", Structure: "structure",
	Usage: "usage", Stop: "stop", Error: "error", Ping: "ping", ReasoningSeal: "reasoning_seal",
}

// String is the word that the log uses (first_output of attempt_committed).
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "opaque"
}

// StopReason is why an answer ended. The set is closed: a decoder that meets a
// reason it cannot place fails the attempt, because an unknown reason passed on
// as a normal stop is how half a tool call gets executed.
type StopReason string

// The stop reasons.
const (
	StopNone          StopReason = ""
	StopEnd           StopReason = "stop"
	StopLength        StopReason = "length"
	StopToolCalls     StopReason = "tool_calls"
	StopContentFilter StopReason = "content_filter"
	StopRefusal       StopReason = "refusal"
)

// Event is one thing that happened in an answer.
//
// Text and the strings of Tool may share the memory of the frame that they came
// from: they are valid until the next read of the stream.
type Event struct {
	Kind Kind
	// Choice is the answer it belongs to where a request asked for several.
	Choice int
	// Index is the position of a tool call or an image within its choice, dense
	// from 0.
	Index int
	// Text is the decoded text of Text, Reasoning, Refusal, and the argument
	// fragment of ToolCallDelta.
	Text []byte
	// Tool is set on ToolCallStart.
	Tool Tool
	// Stop is set on Stop.
	Stop StopReason
	// Seal is set on ReasoningSeal.
	Seal OpaqueReasoning
	// Usage is set on Usage. It is cumulative: the last value wins.
	Usage usage.Usage
}

// Tool names a call.
type Tool struct {
	ID   string
	Name string
}

// Semantic reports whether the event is output in the sense of S1, the first of
// which commits the request to this answer: text, tool call, image, exposed
// reasoning, output structure, visible refusal. Framing alone is not, nor is an
// empty delta.
func (e *Event) Semantic() bool {
	switch e.Kind {
	case Text, Reasoning, Refusal, ToolCallDelta:
		return len(e.Text) > 0
	case ToolCallStart, Image, Structure:
		return true
	default:
		return false
	}
}

// Generation reports whether the event shows that the provider is still working
// on the answer, which is what the idle limit waits for (W11): output, or the end
// of it. Pings and role-only chunks do not.
func (e *Event) Generation() bool {
	switch e.Kind {
	case ToolCallEnd, Stop:
		return true
	default:
		return e.Semantic()
	}
}

package neutral

import (
	"encoding/json"
	"strings"
)

// Request is a caller's request in nobody's dialect: what a destination of another
// dialect is asked from. It is decoded from the caller's own body for each attempt
// that needs it and never carries what an earlier destination was sent (W14).
//
// It holds what at least two dialects can say. What only one can say travels in
// that dialect's own body, or is a row of the table of what is dropped (P5).
type Request struct {
	// System are the instructions, in order. Dialects that allow them between
	// messages have them moved to the front.
	System   []Part
	Messages []Message
	Tools    []ToolDefinition
	Choice   ToolChoice
	// ParallelCalls is nil where the caller leaves it to the model.
	ParallelCalls *bool
	// Format asks for structured output; nil is plain text.
	Format    *Format
	Reasoning *ReasoningOptions
	// MaxOutputTokens is 0 when not set.
	MaxOutputTokens int64
	Sampling        Sampling
	Stop            []string
	Stream          bool
	// User is the caller's end user as a hint; Metadata is opaque to us.
	User     string
	Metadata json.RawMessage
}

// Sampling are the knobs of the sampler, as the caller wrote the numbers: a float
// that went through a struct could come out as another one. nil is not set.
type Sampling struct {
	Temperature      json.Number
	TopP             json.Number
	TopK             json.Number
	Seed             json.Number
	FrequencyPenalty json.Number
	PresencePenalty  json.Number
}

// Role is who speaks a message.
type Role string

// The roles. Tool results are parts of a user's message: where a dialect has a role
// for them they are taken from there, and all results of a turn come in one message.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn.
type Message struct {
	Role  Role
	Parts []Part
}

// PartKind is what a part of a message holds.
type PartKind uint8

// The kinds of parts.
const (
	TextPart PartKind = iota + 1
	ImagePart
	DocumentPart
	AudioPart
	ToolCallPart
	ToolResultPart
	ReasoningPart
	RefusalPart
)

// Part is one piece of a message. Which fields are set follows from Kind.
type Part struct {
	Kind PartKind
	// Text of TextPart, RefusalPart and of exposed ReasoningPart.
	Text string
	// Media of ImagePart, DocumentPart and AudioPart.
	Media Media
	// Call of ToolCallPart.
	Call ToolCall
	// Result of ToolResultPart.
	Result ToolResult
	// Opaque is a reasoning part's signature or encrypted content. It belongs to its
	// issuer and means nothing anywhere else (K4).
	Opaque OpaqueReasoning
	// Cache marks the end of a prefix to be cached; nil for none (P6).
	Cache *CacheMarker
}

// Media is an image, a document or audio: by address or as data.
type Media struct {
	// URL is set, or Type and Base64 are.
	URL    string
	Type   string
	Base64 string
	// Name is a file's, Detail an image's resolution hint: auto, low, high.
	Name   string
	Detail string
	// FileID names a file that the provider holds: it means nothing elsewhere.
	FileID string
}

// ToolCall is a call that the model made in an earlier turn.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is the JSON text as the model wrote it.
	Arguments string
}

// ToolResult answers a call.
type ToolResult struct {
	CallID string
	// Name is the tool's, for dialects that match by name.
	Name    string
	Parts   []Part
	IsError bool
}

// OpaqueReasoning is reasoning content that only its issuer can read.
type OpaqueReasoning struct {
	// Issuer is the dialect whose token it is.
	Issuer Dialect
	ID     string
	// Signature of exposed reasoning; Encrypted of withheld reasoning.
	Signature string
	Encrypted string
	// Redacted is Anthropic's redacted_thinking data.
	Redacted string
}

// clone outlives the frame that the strings may be views of.
func (o OpaqueReasoning) clone() OpaqueReasoning {
	return OpaqueReasoning{
		Issuer: o.Issuer, ID: strings.Clone(o.ID), Signature: strings.Clone(o.Signature),
		Encrypted: strings.Clone(o.Encrypted), Redacted: strings.Clone(o.Redacted),
	}
}

// CacheMarker asks for the prefix up to here to be cached.
type CacheMarker struct {
	// TTL is "5m" or "1h"; empty is the provider's default.
	TTL string
}

// ToolDefinition is a function that the model may call.
type ToolDefinition struct {
	Name        string
	Description string
	// Schema is the JSON schema of the arguments, as the caller wrote it.
	Schema json.RawMessage
	Strict *bool
	Cache  *CacheMarker
}

// ToolChoice says whether a tool must be called.
type ToolChoice struct {
	Mode ChoiceMode
	// Name is set when Mode is ChoiceNamed.
	Name string
}

// ChoiceMode is how free the model is to call tools.
type ChoiceMode uint8

// The modes; the zero value leaves it to the destination's default.
const (
	ChoiceDefault ChoiceMode = iota
	ChoiceAuto
	ChoiceNone
	ChoiceAny
	ChoiceNamed
)

// Format is the structure that an answer must have. Without a Schema any JSON
// object will do.
type Format struct {
	Name        string
	Description string
	Schema      json.RawMessage
	Strict      *bool
}

// ReasoningOptions say how much the model may think.
type ReasoningOptions struct {
	// Effort is minimal, low, medium, high or a provider's own word; empty when a
	// budget is given instead.
	Effort string
	// BudgetTokens is 0 when not set.
	BudgetTokens int64
	// Summary asks for a readable summary: auto, concise, detailed.
	Summary string
	// Disabled turns reasoning off where it is on by default.
	Disabled bool
}

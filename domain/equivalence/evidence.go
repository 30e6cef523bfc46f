package equivalence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// Format is the version of the form that evidence is written and hashed in.
const Format = 1

// Result is how something came out, in the words of Q1.
type Result string

// The results. Passed is never said of what was not compared: a failed call, a call
// that was not allowed and a question that was not asked each have their own word.
const (
	Passed Result = "passed"
	// Failed is an answer that is not as the others, or no answer.
	Failed Result = "failed"
	// Blocked is a call that was not made because a limit or something missing forbade it.
	Blocked Result = "blocked"
	// Untested is what was not asked, or had nothing to be compared with.
	Untested Result = "untested"
)

// Reason is why a deployment was not asked, or could not be compared.
type Reason string

// The reasons of Blocked and Untested.
const (
	// MaxUSD and MaxAttempts are the ceilings of the check.
	MaxUSD      Reason = "max_usd"
	MaxAttempts Reason = "max_attempts"
	// PriceUnknown: what has no price cannot be kept under a ceiling.
	PriceUnknown      Reason = "price_unknown"
	CredentialMissing Reason = "credential_missing"
	// BaseURLRefused: the base URL leads into the own network, which is not opened to it.
	BaseURLRefused Reason = "base_url_refused"
	// CapabilityMissing: the deployment does not declare what the case needs, or its
	// protocol has no word for it.
	CapabilityMissing Reason = "capability_missing"
	// ContextTooSmall: the deployment declares a window that the case does not fit.
	ContextTooSmall Reason = "context_too_small"
	// Unreachable: an earlier call failed in a way that the next one would repeat.
	Unreachable Reason = "unreachable"
	// NothingToCompare: no other deployment answered the case, or could be asked.
	NothingToCompare Reason = "nothing_to_compare"
)

// Evidence is what one check found. It holds no content: kinds, counts, our own words
// and the names of the configuration. Its hash is what a certification cites (N15).
type Evidence struct {
	Format int `json:"format"`
	// Model is the slug whose chain the pool is of.
	Model      string `json:"model"`
	ExactModel string `json:"exact_model"`
	// At is when the check ended.
	At time.Time `json:"at"`
	// Set is the hash of the synthetic requests, so that two checks can be told to have
	// asked the same.
	Set    string `json:"set"`
	Result Result `json:"result"`
	// Pool are the deployments in the order of the chain.
	Pool  []Member `json:"pool"`
	Cases []Case   `json:"cases"`
	// LeftOut are the cases that no deployment of the pool declares to be able to answer.
	LeftOut []string `json:"left_out,omitempty"`
	// MaxSpend was the ceiling of cost.
	MaxSpend money.NanoUSD `json:"max_spend_nanousd"`
	// MaxAttempts was the ceiling of calls.
	MaxAttempts int `json:"max_attempts"`
	// Attempts are the calls that were made.
	Attempts int `json:"attempts"`
	// Cost is what the answers cost as their providers counted.
	Cost money.NanoUSD `json:"cost_nanousd"`
	// Exposure is the worst case of the calls whose usage nobody told.
	Exposure money.NanoUSD `json:"exposure_nanousd"`
}

// Member is one deployment of the pool as it was when it was checked.
type Member struct {
	Deployment    string `json:"deployment"`
	Provider      string `json:"provider"`
	Protocol      string `json:"protocol"`
	UpstreamModel string `json:"upstream_model"`
	Result        Result `json:"result"`
}

// Case is one synthetic request and what came of it.
type Case struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	// Reference is the deployment that the others were compared with: the first that
	// answered as the case asks. Empty when there is none.
	Reference string `json:"reference,omitempty"`
	// Answers has one entry for each member, in the order of the pool.
	Answers     []Answer     `json:"answers"`
	Differences []Difference `json:"differences,omitempty"`
}

// Answer is what one deployment made of one case.
type Answer struct {
	Deployment string `json:"deployment"`
	Result     Result `json:"result"`
	// Reason is set when it was not asked or not compared.
	Reason Reason `json:"reason,omitempty"`
	// Failure is set when the call failed.
	Failure failure.Class `json:"failure,omitempty"`
	// Code is our own word for the sub-case of a failure, never the provider's.
	Code string `json:"code,omitempty"`
	// Status is the HTTP status of a failure, absent when there was none.
	Status int `json:"status,omitempty"`
	// Shape is set when an answer came.
	Shape *Shape `json:"shape,omitempty"`
	// WorstCase is what the call could cost at most.
	WorstCase money.NanoUSD `json:"worst_case_nanousd,omitempty"`
	// Cost is what it did cost, absent where nobody told.
	Cost *money.NanoUSD `json:"cost_nanousd,omitempty"`
}

// Shape is an answer without what it says.
type Shape struct {
	// Output are the kinds of output, sorted: text, reasoning, tool_call, refusal.
	Output []string `json:"output,omitempty"`
	// Calls are the tool calls, sorted by tool.
	Calls []Call `json:"calls,omitempty"`
	// Structured says whether output that was asked for in a structure has it; nil where
	// none was asked for.
	Structured *bool `json:"structured,omitempty"`
	// Overrun says that the text went on past a stop sequence.
	Overrun bool `json:"overrun,omitempty"`
	// Stop is why the answer ended.
	Stop  string      `json:"stop"`
	Usage usage.Usage `json:"usage,omitzero"`
}

// Call is one tool call of an answer.
type Call struct {
	// Tool is one of the names that were offered, or OtherTool.
	Tool string `json:"tool"`
	// Valid says that the arguments fit the tool's schema.
	Valid bool `json:"valid"`
}

// OtherTool stands for a tool that was not offered: its name is the model's own text.
const OtherTool = "another_tool"

// Aspect is what two answers are compared in.
type Aspect string

// The aspects.
const (
	AspectOutput       Aspect = "output"
	AspectTools        Aspect = "tools"
	AspectArguments    Aspect = "arguments"
	AspectStructure    Aspect = "structure"
	AspectStopReason   Aspect = "stop_reason"
	AspectStopSequence Aspect = "stop_sequence"
	AspectUsage        Aspect = "usage"
	AspectInputTokens  Aspect = "input_tokens"
	AspectOutputTokens Aspect = "output_tokens"
)

// Difference is one aspect in which a deployment's answer is not what it should be.
type Difference struct {
	Deployment string `json:"deployment"`
	Aspect     Aspect `json:"aspect"`
	// Against is the deployment that answered otherwise; empty where the case itself
	// asks for it.
	Against string `json:"against,omitempty"`
	Want    string `json:"want"`
	Got     string `json:"got"`
}

// Hash is the name by which a certification cites the evidence: "sha256:" and the hex
// SHA-256 of its JSON.
func (e Evidence) Hash() string {
	text, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("equivalence: evidence cannot be encoded: %v", err)) // plain structs
	}
	sum := sha256.Sum256(text)
	return HashPrefix + hex.EncodeToString(sum[:])
}

// HashPrefix begins every Hash. Evidence without it is an operator's own and names no
// check.
const HashPrefix = "sha256:"

package converse

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// model is what a model may be asked beyond what every model of the dialect takes.
// Bedrock refuses the whole request for a field that its model does not know, so a
// hint is left out where it is known to be refused.
type model struct {
	// cachePoints are taken after system, messages and, where cacheTools, tools;
	// cacheHour says that they may last an hour.
	cachePoints, cacheTools, cacheHour bool
	// thinking is how reasoning is asked for.
	thinking thinkingStyle
	// topK is the additional field for top_k; empty where there is none.
	topK string
	// strictTools takes strict on a tool, resultStatus an error status on its result.
	strictTools, resultStatus bool
	// oneSampler takes temperature or top_p, not both; noSampler neither.
	oneSampler, noSampler bool
	// betas takes Anthropic's beta flags.
	betas bool
}

type thinkingStyle uint8

const (
	noThinking thinkingStyle = iota
	// budgetThinking is Claude's up to 4.5: a number of tokens.
	budgetThinking
	// adaptiveThinking is Claude's from 4.6 on: the model decides, an effort guides it.
	// From 4.7 on a budget is refused.
	adaptiveThinking
	// effortField is a reasoning_effort as OpenAI's open models take it.
	effortField
	// reasoningConfig is Nova's.
	reasoningConfig
)

// vendors are the models that are not Claude, by a part of their id. A model that is
// in none of these, such as an application inference profile whose ARN says nothing,
// is taken for a Claude: what Bedrock is mostly called for, and what the fields in
// question come from.
var vendors = []struct {
	part  string
	model model
}{
	{"amazon.nova-2", model{cachePoints: true, thinking: reasoningConfig, resultStatus: true}},
	{"amazon.nova", model{cachePoints: true, resultStatus: true}},
	{"amazon.", model{}},
	{"openai.", model{thinking: effortField}},
	{"mistral.", model{topK: "top_k"}},
	{"cohere.", model{topK: "k"}},
	{"meta.", model{}},
	{"ai21.", model{}},
	{"deepseek.", model{}},
	{"writer.", model{}},
	{"qwen.", model{}},
	{"moonshot", model{}},
	{"minimax.", model{}},
	{"google.", model{}},
	{"nvidia.", model{}},
	{"zai.", model{}},
}

// modelOf places an id: example.model-v1:0, with a region's prefix, or an ARN of
// either.
func modelOf(id string) model {
	id = strings.ToLower(id)
	if !strings.Contains(id, "claude") {
		for _, v := range vendors {
			if strings.Contains(id, v.part) {
				return v.model
			}
		}
	}
	version, known := claudeVersion(id)
	m := model{
		cachePoints: true, cacheTools: true, topK: "top_k", resultStatus: true, betas: true,
		cacheHour:   !known || version >= 405,
		strictTools: !known || version >= 405,
		oneSampler:  version >= 401,
		noSampler:   version >= 407,
		thinking:    budgetThinking,
	}
	switch {
	case version >= 406:
		m.thinking = adaptiveThinking
	case known && version < 307:
		m.thinking = noThinking
	}
	return m
}

// claudeVersion is major*100+minor of a Claude's id, in which the version stands
// before the name of the size or after it: claude-3-7-sonnet-20250219-v1:0,
// claude-sonnet-4-5-20250929-v1:0, claude-opus-4-6-v1. Dates have more digits.
func claudeVersion(id string) (version int, known bool) {
	_, rest, found := strings.Cut(id, "claude-")
	if !found {
		return 0, false
	}
	words := strings.Split(rest, "-")
	for i, word := range words {
		major, ok := smallNumber(word)
		if !ok {
			continue
		}
		minor := 0
		if i+1 < len(words) {
			if n, ok := smallNumber(words[i+1]); ok {
				minor = n
			}
		}
		return major*100 + minor, true
	}
	// Claude 2 and Instant are written v2:1, v1.
	return 0, true
}

func smallNumber(word string) (int, bool) {
	n, err := strconv.Atoi(word)
	return n, err == nil && len(word) <= 2 && n >= 0
}

// knownBetas are the beta flags that Bedrock knows; for any other it refuses the
// request.
var knownBetas = []string{
	"computer-use-2025-01-24", "token-efficient-tools-2025-02-19", "interleaved-thinking-2025-05-14",
	"output-128k-2025-02-19", "dev-full-thinking-2025-05-14", "context-1m-2025-08-07",
	"context-management-2025-06-27", "effort-2025-11-24", "tool-search-tool-2025-10-19",
	"tool-examples-2025-10-29", "fine-grained-tool-streaming-2025-05-14",
}

// betaFlags are a Messages caller's flags that go on to the model, in the caller's
// order (P11).
func betaFlags(req *dialect.Request, t dialect.Target) []string {
	if req.Dialect != neutral.Messages {
		return nil
	}
	var flags []string
	for _, flag := range req.Flags.AnthropicBeta {
		if slices.Contains(knownBetas, flag) && (t.BetaFlags == nil || slices.Contains(t.BetaFlags, flag)) && !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	return flags
}

// The budgets up to which an effort is low or medium, as the other dialects have it.
const (
	lowBudget    = 2048
	mediumBudget = 8192
	// minBudget is the least that a model may be told to think.
	minBudget = 1024
)

// budgets are what an effort is in tokens.
var budgets = map[string]int64{
	"minimal": 1024, "low": lowBudget, "medium": mediumBudget, "high": 24576, "xhigh": 32768, "max": 65536,
}

// efforts are the words of adaptive models, by the words of callers. xhigh is newer
// than some of the models.
var efforts = map[string]string{
	"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "max",
}

// effortOf is the effort that was asked for, or the one that comes nearest to a
// budget; empty where neither was given.
func effortOf(r *neutral.ReasoningOptions) string {
	switch {
	case r.Effort != "" || r.BudgetTokens == 0:
		return efforts[r.Effort]
	case r.BudgetTokens <= lowBudget:
		return "low"
	case r.BudgetTokens <= mediumBudget:
		return "medium"
	default:
		return "high"
	}
}

// budgetOf is how many tokens the model may think: less than it may say in all, where
// that is known. 0 is none.
func budgetOf(r *neutral.ReasoningOptions, maxTokens int64) int64 {
	budget := r.BudgetTokens
	if budget == 0 {
		budget = budgets[r.Effort]
	}
	if budget == 0 {
		// Asked to think as it sees fit, which only newer models can.
		budget = mediumBudget
	}
	budget = max(budget, minBudget)
	if maxTokens > 0 {
		budget = min(budget, maxTokens/4*3)
	}
	if budget < minBudget {
		return 0
	}
	return budget
}

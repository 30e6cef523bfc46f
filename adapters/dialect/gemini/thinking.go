package gemini

import (
	"strconv"
	"strings"

	"github.com/sluice-gateway/sluice/domain/neutral"
)

// model is what the name of a model says about how it thinks.
type model struct {
	// version is 2.5 for gemini-2.5-pro, 0 where the name has none, as with
	// gemini-flash-latest.
	version float64
	pro     bool
	flash   bool
	name    string
}

func modelOf(upstream string) model {
	name := upstream[strings.LastIndexByte(upstream, '/')+1:]
	m := model{name: name, pro: strings.Contains(name, "-pro"), flash: strings.Contains(name, "-flash")}
	if rest, ok := strings.CutPrefix(name, "gemini-"); ok {
		number, _, _ := strings.Cut(rest, "-")
		if v, err := strconv.ParseFloat(number, 64); err == nil {
			m.version = v
		}
	}
	return m
}

// levels reports whether the model thinks in levels and not in budgets.
func (m model) levels() bool { return m.version >= 3 }

// thinks reports whether the model takes any word on thinking. The ones before 2.5
// refuse a request that has one.
func (m model) thinks() bool { return m.version == 0 || m.version >= 2.5 }

// The bounds of a thinking budget in tokens, as Google documents them. A budget
// outside is refused.
const (
	minBudgetPro  = 128
	minBudgetLite = 512
	maxBudget     = 24576
	maxBudgetPro  = 32768
)

// budgets are the efforts in tokens, as Google's own OpenAI-compatible endpoint has
// them.
var budgets = map[string]int64{
	"minimal": 1024, "low": 1024, "medium": 8192, "high": maxBudget, "xhigh": maxBudget, "max": maxBudget,
}

func (m model) budget(n int64) int64 {
	least, most := int64(1), int64(maxBudget)
	if m.pro {
		least, most = minBudgetPro, maxBudgetPro
	}
	if strings.Contains(m.name, "-lite") {
		least = minBudgetLite
	}
	return min(max(n, least), most)
}

// level is an effort in the words of the third generation; which ones a model knows
// differs.
func (m model) level(effort string) string {
	switch effort {
	case "minimal":
		if m.flash {
			return "minimal"
		}
		return "low"
	case "low":
		return "low"
	case "medium":
		if strings.HasPrefix(m.name, "gemini-3-pro") {
			return "high"
		}
		return "medium"
	case "high", "xhigh", "max":
		return "high"
	}
	return ""
}

// thinking says how much to think, and to show it: a caller who asks for reasoning
// gets to see what there is of it.
func (w *writer) thinking(r *neutral.ReasoningOptions) {
	if r == nil || !w.model.thinks() {
		return
	}
	w.key("thinkingConfig")
	w.raw("{")
	switch {
	case r.Disabled:
		w.leastThinking()
	case r.BudgetTokens > 0:
		w.int("thinkingBudget", w.model.budget(r.BudgetTokens))
	case w.model.levels():
		if level := w.model.level(r.Effort); level != "" {
			w.text("thinkingLevel", level)
		}
	default:
		if budget, ok := budgets[r.Effort]; ok {
			w.int("thinkingBudget", budget)
		}
	}
	if !r.Disabled {
		w.key("includeThoughts")
		w.raw("true")
	}
	w.raw("}")
}

// leastThinking turns thinking off, or as far down as it goes where it cannot be.
func (w *writer) leastThinking() {
	switch {
	case w.model.levels():
		w.text("thinkingLevel", w.model.level("minimal"))
	case w.model.pro:
		w.int("thinkingBudget", minBudgetPro)
	default:
		w.int("thinkingBudget", 0)
	}
}

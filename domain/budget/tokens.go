package budget

import (
	"slices"
	"strings"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// Token counters hold thousandths of a token: a cached one counts as a part of one, and
// the sum is rounded when it is looked at, once (R3, R4).
const partsPerToken = money.PartsPerToken

// maxTokenParts bounds what one attempt adds to a counter: a sum of a few counts of
// nonsense would overflow it.
const maxTokenParts = usage.MaxCount * partsPerToken

// wholeTokens rounds half away from zero.
func wholeTokens(parts int64) int64 {
	if parts < 0 {
		return -wholeTokens(-parts)
	}
	whole, rest := parts/partsPerToken, parts%partsPerToken
	if rest >= partsPerToken/2 {
		whole++
	}
	return whole
}

// tokenParts are whole tokens in parts.
func tokenParts(tokens int64) int64 {
	if tokens > maxTokenParts/partsPerToken {
		return maxTokenParts
	}
	return max(tokens, 0) * partsPerToken
}

// Take is what a dispatch takes of the limits that do not count money: one request,
// and its whole estimated input without any discount (R2).
func Take(limits []Limit, inputTokens int64) []request.Take {
	takes := make([]request.Take, 0, len(limits))
	for i := range limits {
		l := &limits[i]
		switch l.Unit {
		case catalog.Requests:
			takes = once(takes, request.Take{Key: string(l.Key), Settled: 1})
		case catalog.Tokens:
			// The day's and the month's limits share one hold.
			key := l.Key
			if l.HeldKey != "" {
				key = l.HeldKey
			}
			takes = once(takes, request.Take{Key: string(key), Held: tokenParts(inputTokens)})
		}
	}
	return takes
}

// once adds a take, unless there is one of its counter: limits may share one (M8).
func once(takes []request.Take, take request.Take) []request.Take {
	if slices.ContainsFunc(takes, func(t request.Take) bool { return t.Key == take.Key }) {
		return takes
	}
	return append(takes, take)
}

// Return replaces the tokens that an attempt took with those that it used, in parts:
// on the counters that were held (N14), and in the windows that hold now, whatever day
// it began on (R2).
func Return(taken []request.Take, limits []Limit, usedParts int64) []request.Take {
	usedParts = min(usedParts, maxTokenParts)
	var takes []request.Take
	for _, t := range taken {
		if !holdsTokens(t) {
			continue
		}
		back := request.Take{Key: t.Key, Held: -t.Held}
		if strings.HasSuffix(t.Key, trailing) {
			back.Settled = usedParts
		}
		takes = append(takes, back)
	}
	if usedParts == 0 {
		return takes
	}
	for i := range limits {
		if l := &limits[i]; l.HeldKey != "" {
			takes = once(takes, request.Take{Key: string(l.Key), Settled: usedParts})
		}
	}
	return takes
}

// holdsTokens tells a limit's held tokens from what else an attempt may have taken. An
// input that was estimated at nothing is a hold too.
func holdsTokens(t request.Take) bool {
	if !strings.HasPrefix(t.Key, limitKeys) {
		return false
	}
	key := strings.TrimSuffix(t.Key, trailing)
	return strings.HasSuffix(key, "/tokens/held") ||
		key != t.Key && (strings.HasSuffix(key, "/tokens/minute") || strings.HasSuffix(key, "/tokens/hour"))
}

// HoldOn keeps tokens on the counters that an attempt held them on, for as long as
// nobody knows what it used (D2, R2).
func HoldOn(taken []request.Take, tokens int64) []request.Take {
	var takes []request.Take
	for _, t := range taken {
		if holdsTokens(t) {
			takes = append(takes, request.Take{Key: t.Key, Held: tokenParts(tokens)})
		}
	}
	return takes
}

// LetGo gives back what HoldOn kept.
func LetGo(held []request.Take) []request.Take {
	var takes []request.Take
	for _, t := range held {
		takes = append(takes, request.Take{Key: t.Key, Held: -t.Held})
	}
	return takes
}

package dialect

import "github.com/sluice-gateway/sluice/domain/neutral"

// Dropped is something that a dialect can say and that a destination of another
// dialect is not told (P5). What is not in the table, and is no feature that skips
// the destination, arrives.
type Dropped struct {
	// From is the caller's dialect, To the destination's; Any is all others.
	From, To neutral.Dialect
	// Field is the field as the caller's dialect spells it.
	Field string
	// What happens, in the words of docs/dialects.md.
	What string
}

// Any stands for every dialect but the other side's.
const Any neutral.Dialect = "any"

// dropped is the whole table, by the caller's dialect. A test of the dialect walks
// its rows: each field is sent, and what is said of it is what happens.
var dropped = []Dropped{
	{neutral.Chat, Any, "messages[].name", "dropped"},
	{neutral.Chat, Any, "logit_bias", "dropped: token numbers of one vocabulary mean nothing in another"},
	{neutral.Chat, Any, "prediction", "dropped: it makes an answer faster, not different"},
	{neutral.Chat, Any, "service_tier", "dropped"},
	{neutral.Chat, Any, "store", "dropped"},
	{neutral.Chat, Any, "verbosity", "dropped"},
	{neutral.Chat, Any, "prompt_cache_key", "dropped; it still steers the choice of route"},
	{neutral.Chat, Any, "safety_identifier", "dropped"},
	{neutral.Chat, Any, "fields that nobody knows", "dropped: what they mean is between the caller and a provider of its dialect"},

	{Any, neutral.Chat, "reasoning signatures", "dropped: only their issuer can read them (K4)"},
	{Any, neutral.Chat, "reasoning of earlier turns", "dropped; DeepSeek gets the text of it back with the calls that came of it"},
	{Any, neutral.Chat, "tool result is_error", "dropped; the text of the result says what went wrong"},
	{Any, neutral.Chat, "images and documents in tool results", "moved into a user message behind the results of the turn"},
	{Any, neutral.Chat, "cache markers", "dropped, except on OpenRouter: OpenAI caches by itself"},
	{Any, neutral.Chat, "reasoning budget in tokens", "becomes an effort, except on OpenRouter"},
	{Any, neutral.Chat, "reasoning summary", "dropped"},
	{Any, neutral.Chat, "top_k", "dropped, except on OpenRouter, vLLM and their like: OpenAI has none"},
	{Any, neutral.Chat, "metadata", "dropped"},
	{Any, neutral.Chat, "the end user", "dropped: it steers the choice of route and is none of another vendor's business"},
	{Any, neutral.Chat, "several texts of a message", "joined by a blank line into one: lists of texts are refused by some servers"},
}

// DroppedTable is the table, for tests and documentation.
func DroppedTable() []Dropped { return dropped }

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
	{neutral.Chat, Any, "reasoning signatures", "none come back: this dialect has no place for them in an answer"},
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

	{neutral.Messages, Any, "system attribution block", "dropped: Claude Code's first system text is for Anthropic's billing alone, which takes it out too"},
	{neutral.Messages, Any, "document title and context", "a title is the file's name; a context becomes text before the document"},
	{neutral.Messages, Any, "search results", "become text with their title and source"},
	{neutral.Messages, Any, "citations", "dropped: no other dialect asks for them"},
	{neutral.Messages, Any, "context_management", "dropped: the conversation is sent whole"},
	{neutral.Messages, Any, "service_tier", "dropped"},
	{neutral.Messages, Any, "fields that nobody knows", "dropped: what they mean is between the caller and a provider of its dialect"},

	{neutral.Responses, Any, "include", "dropped: what it adds to an answer only a Responses provider has; seals of reasoning come in any case"},
	{neutral.Responses, Any, "truncation", "dropped: a conversation that is too long is refused (A5)"},
	{neutral.Responses, Any, "text.verbosity", "dropped"},
	{neutral.Responses, Any, "max_tool_calls", "dropped: it counts calls of tools that run at the provider"},
	{neutral.Responses, Any, "stream_options", "dropped: nothing of ours is obfuscated"},
	{neutral.Responses, Any, "service_tier", "dropped"},
	{neutral.Responses, Any, "store", "kept here, where the organization lets answers be kept (K6)"},
	{neutral.Responses, Any, "prompt_cache_key", "dropped; it still steers the choice of route"},
	{neutral.Responses, Any, "safety_identifier", "dropped; it still steers the choice of route"},
	{neutral.Responses, Any, "input[].encrypted_content", "goes back to the dialect that made it, and to no other (K4)"},
	{neutral.Responses, Any, "input[] instructions between messages", "moved to the front, behind instructions"},
	{neutral.Responses, Any, "images in an answer", "dropped: an image of another dialect is no item here"},
	{neutral.Responses, Any, "fields that nobody knows", "dropped: what they mean is between the caller and a provider of its dialect"},

	{Any, neutral.Responses, "stop sequences", "dropped: there are none there"},
	{Any, neutral.Responses, "top_k", "dropped"},
	{Any, neutral.Responses, "seed", "dropped"},
	{Any, neutral.Responses, "penalties", "dropped"},
	{Any, neutral.Responses, "reasoning of earlier turns", "dropped, unless a Responses provider encrypted it (K4)"},
	{Any, neutral.Responses, "reasoning budget in tokens", "becomes an effort: low up to 2048, medium up to 12288, else high"},
	{Any, neutral.Responses, "limits of output under 16 tokens", "raised to 16: less is refused there"},
	{Any, neutral.Responses, "cache markers", "dropped: OpenAI caches by itself"},
	{Any, neutral.Responses, "tool result is_error", "dropped; the text of the result says what went wrong"},
	{Any, neutral.Responses, "several texts of instructions", "joined by a blank line into one"},
	{Any, neutral.Responses, "name of a schema", "response where there is none: a schema must have one there"},
	{Any, neutral.Responses, "strict", "false where it is left out: there it would be true"},
	{Any, neutral.Responses, "metadata", "dropped"},
	{Any, neutral.Responses, "the end user", "dropped: it steers the choice of route and is none of another vendor's business"},

	{Any, neutral.Messages, "reasoning of earlier turns", "dropped, unless Anthropic signed it (K4)"},
	{Any, neutral.Messages, "reasoning effort", "becomes a budget of thinking, at most three quarters of the limit of output; none beside a forced tool call, and none in a turn that began without it"},
	{Any, neutral.Messages, "reasoning summary", "dropped: thinking comes as its provider shows it"},
	{Any, neutral.Messages, "temperature", "at most 1, and dropped beside thinking"},
	{Any, neutral.Messages, "top_p", "dropped beside temperature or thinking: newer models refuse both"},
	{Any, neutral.Messages, "seed", "dropped"},
	{Any, neutral.Messages, "penalties", "dropped"},
	{Any, neutral.Messages, "blank texts", "dropped: they are refused there"},
	{Any, neutral.Messages, "blank stop sequences", "dropped: they are refused there"},
	{Any, neutral.Messages, "JSON without a schema", "dropped: the prompt has to ask for JSON in any case"},
	{Any, neutral.Messages, "name of a schema", "dropped"},
	{Any, neutral.Messages, "image detail", "dropped"},
	{Any, neutral.Messages, "arguments that are no JSON object", "put inside of one, as its member arguments"},
	{Any, neutral.Messages, "ids of calls in other letters", "written in the letters that are allowed"},
	{Any, neutral.Messages, "metadata", "dropped"},
	{Any, neutral.Messages, "the end user", "dropped: it steers the choice of route and is none of another vendor's business"},

	{Any, neutral.Generate, "reasoning of earlier turns", "dropped; only Google's own signatures go back, each to the part that it stood on (K4)"},
	{Any, neutral.Generate, "calls without a signature", "marked as coming from elsewhere, by Google's own word for it, for models that want a signature on the first call of a turn"},
	{Any, neutral.Generate, "reasoning effort", "becomes a thinking level, or before Gemini 3 a budget of thinking: 1024, 8192 or 24576 tokens"},
	{Any, neutral.Generate, "reasoning budget in tokens", "kept within what the model takes"},
	{Any, neutral.Generate, "reasoning turned off", "as far down as it goes where it cannot be turned off; nothing for models that do not think"},
	{Any, neutral.Generate, "reasoning summary", "dropped: thoughts come as Google sums them up"},
	{Any, neutral.Generate, "parallel_tool_calls", "dropped: the model decides"},
	{Any, neutral.Generate, "strict", "dropped: there is no such switch for a function or a schema"},
	{Any, neutral.Generate, "const and oneOf in schemas", "become enum and anyOf; values that are no strings become words of the description"},
	{Any, neutral.Generate, "$ref and allOf in schemas", "written out; a schema that refers to itself is refused with its field (400)"},
	{Any, neutral.Generate, "null in schemas", "becomes nullable"},
	{Any, neutral.Generate, "other keywords of schemas", "dropped, since one of them would have the request refused: $schema, $id, title, default, examples, additionalProperties, patternProperties, prefixItems, exclusiveMinimum, exclusiveMaximum, multipleOf, uniqueItems, not, if, and formats that are unknown there"},
	{Any, neutral.Generate, "name of a schema", "dropped"},
	{Any, neutral.Generate, "cache markers", "dropped: Google caches by itself, and a cache of its explicit kind is an object to be made and paid for by the hour"},
	{Any, neutral.Generate, "ids of calls", "dropped: results are matched by their place and name, and are put into the order of their calls"},
	{Any, neutral.Generate, "images and documents in tool results", "moved behind the results of the turn"},
	{Any, neutral.Generate, "arguments that are no JSON object", "put inside of one, as its member arguments"},
	{Any, neutral.Generate, "image detail", "dropped"},
	{Any, neutral.Generate, "file names", "dropped"},
	{Any, neutral.Generate, "blank texts", "dropped: they are refused there"},
	{Any, neutral.Generate, "instructions without a message", "become the first message: a prompt needs one there"},
	{Any, neutral.Generate, "metadata", "dropped"},
	{Any, neutral.Generate, "the end user", "dropped: it steers the choice of route and is none of another vendor's business"},

	{Any, neutral.Converse, "reasoning of earlier turns", "dropped, unless Bedrock sealed it (K4)"},
	{Any, neutral.Converse, "reasoning effort", "becomes a budget of thinking, at most three quarters of the limit of output, or the model's own word for an effort; none for models that do not think, beside a forced tool call, and with a budget in a turn that began without it"},
	{Any, neutral.Converse, "reasoning budget in tokens", "becomes an effort for models that take no budget"},
	{Any, neutral.Converse, "reasoning summary", "dropped: thinking comes as its provider shows it"},
	{Any, neutral.Converse, "cache markers", "become cache points, of one hour only for models that have them; inside a tool result behind it; none for models that refuse them"},
	{Any, neutral.Converse, "temperature", "at most 1, and dropped beside thinking and for models that refuse it"},
	{Any, neutral.Converse, "top_p", "dropped beside thinking and, for newer Claudes, beside temperature"},
	{Any, neutral.Converse, "top_k", "goes to models that know it, without thinking"},
	{Any, neutral.Converse, "seed", "dropped"},
	{Any, neutral.Converse, "penalties", "dropped"},
	{Any, neutral.Converse, "parallel_tool_calls", "dropped: the model decides"},
	{Any, neutral.Converse, "strict", "kept for the tools of models that know it"},
	{Any, neutral.Converse, "tool_choice none", "the tools go; where the history calls some they stay, since it is refused without them, and the end of the instructions forbids to call them"},
	{Any, neutral.Converse, "calls without tools", "the tools that the history calls are named, since it is refused without them, and the end of the instructions forbids to call them"},
	{Any, neutral.Converse, "tool result is_error", "kept for models that know it; the text of the result says what went wrong"},
	{Any, neutral.Converse, "JSON without a schema", "becomes a sentence at the end of the instructions"},
	{Any, neutral.Converse, "arguments that are no JSON object", "put inside of one, as its member arguments"},
	{Any, neutral.Converse, "ids of calls in other letters", "written in the letters that are allowed"},
	{Any, neutral.Converse, "order within a turn", "results before the rest of a user's turn; reasoning before text before calls in an assistant's"},
	{Any, neutral.Converse, "a conversation that the assistant begins", "gets a user's turn before it"},
	{Any, neutral.Converse, "file names", "written in the letters that are allowed, and numbered where two are the same"},
	{Any, neutral.Converse, "image detail", "dropped"},
	{Any, neutral.Converse, "blank texts", "dropped: they are refused there"},
	{Any, neutral.Converse, "blank stop sequences", "dropped: they are refused there"},
	{Any, neutral.Converse, "metadata", "dropped"},
	{Any, neutral.Converse, "the end user", "dropped: it steers the choice of route and is none of another vendor's business"},
}

// DroppedTable is the table, for tests and documentation.
func DroppedTable() []Dropped { return dropped }

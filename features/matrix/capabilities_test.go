package matrix

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// capability is a row of the matrix: a request that uses it in each dialect, what the
// provider is scripted to do, and how one sees that it arrived.
type capability struct {
	name   string
	script string
	// members are the request but for model, limit and stream.
	members map[neutral.Dialect]string
	// streams and wholes say in which way the answer is asked for.
	streams, wholes bool
	// want is what is promised. nil is proven everywhere.
	want func(from inbound, to outbound) outcome
	// missing names what of the capability did not arrive, empty when all of it did.
	missing func(c cell) string
	// again sends the answer back with the same question, and looks at what the
	// provider is asked then.
	again bool
	// fails says that the request is meant to fail.
	fails bool
	limit int
}

// cell is one run: a capability between two dialects, streamed or not.
type cell struct {
	from   inbound
	to     outbound
	stream bool
	exchange
	reply
}

// say puts the same members into the dialects that have messages, and others into
// Responses.
func say(messages, input string) map[neutral.Dialect]string {
	return map[neutral.Dialect]string{neutral.Chat: messages, neutral.Messages: messages, neutral.Responses: input}
}

// asking is one user's turn, with more members behind it.
func asking(text, more string) map[neutral.Dialect]string {
	turn := `[{"role":"user","content":` + string(quoted(text)) + `}]` + more
	return say(`"messages":`+turn, `"input":`+turn)
}

func quoted(s string) []byte { b, _ := json.Marshal(s); return b }

// pixel is the smallest picture; only that it arrives matters.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// paper is a document.
const paper = "JVBERi0xLjQKJcOkw7zDtsOfCjIgMCBvYmoKPDwvTGVuZ3RoIDMgMCBSPj4K"

// lookup is a tool in each dialect.
func lookup(name string) map[neutral.Dialect]string {
	schema := `{"type":"object","properties":{"zone_marker":{"type":"string"}},"required":["zone_marker"]}`
	return map[neutral.Dialect]string{
		neutral.Chat:      `{"type":"function","function":{"name":"` + name + `","description":"Look up","parameters":` + schema + `}}`,
		neutral.Responses: `{"type":"function","name":"` + name + `","description":"Look up","parameters":` + schema + `}`,
		neutral.Messages:  `{"name":"` + name + `","description":"Look up","input_schema":` + schema + `}`,
	}
}

// using is a question with tools.
func using(names ...string) map[neutral.Dialect]string {
	members := asking("look it up", "")
	for d := range members {
		var list []string
		for _, name := range names {
			list = append(list, lookup(name)[d])
		}
		members[d] += `,"tools":[` + strings.Join(list, ",") + `]`
	}
	return members
}

// ownOnly is a promise for what only the caller's own dialect can say.
func ownOnly(features map[neutral.Dialect]dialect.Feature) func(inbound, outbound) outcome {
	return func(from inbound, to outbound) outcome {
		if f := features[from.dialect]; !dialect.Carries(f, from.dialect, to.dialect) {
			return skipped(string(f))
		}
		return proven
	}
}

var capabilities = []capability{
	{
		name: "text", script: "fake-words:12", wholes: true,
		members: say(
			`"messages":[{"role":"user","content":"first-marker"},{"role":"assistant","content":"second-marker"},{"role":"user","content":"third-marker"}]`,
			`"input":[{"role":"user","content":"first-marker"},{"role":"assistant","content":"second-marker"},{"role":"user","content":"third-marker"}]`),
		missing: func(c cell) string {
			return cmp.Or(absent(c.asked, "first-marker", "second-marker", "third-marker"), absent(c.text, "messages=3", "the quick brown"))
		},
	},
	{
		name: "streaming", script: "fake-cjk+words:20", streams: true, members: asking("hello", ""),
		missing: func(c cell) string { return absent(c.text, "你好", "👩‍💻") },
	},
	{
		name: "tools", script: "fake-tool", wholes: true, streams: true, members: using("get_weather"),
		missing: func(c cell) string {
			return cmp.Or(absent(c.asked, "get_weather", "zone_marker", "Look up"), c.callsMissing(1))
		},
	},
	{
		name: "parallel tools", script: "fake-tools:3", wholes: true, streams: true, members: using("get_weather", "get_time"),
		missing: func(c cell) string { return c.callsMissing(3) },
	},
	{
		name: "tool results", script: "fake-words:6", wholes: true, members: toolResults(`"result-marker"`, `"result-marker"`, `"result-marker"`),
		missing: func(c cell) string {
			if c.to.dialect == neutral.Generate {
				return absent(c.asked, "result-marker", "get_weather")
			}
			return cmp.Or(absent(c.asked, "result-marker", "get_weather"), repeated(c.asked, "call_abc"))
		},
		want: func(_ inbound, to outbound) outcome {
			if to.dialect == neutral.Generate {
				return moved("ids of calls")
			}
			return proven
		},
	},
	{
		name: "tool results with images", script: "fake-words:12", wholes: true,
		members: toolResults(
			`[{"type":"text","text":"result-marker"},{"type":"image_url","image_url":{"url":"data:image/png;base64,`+pixel+`"}}]`,
			`[{"type":"input_text","text":"result-marker"},{"type":"input_image","image_url":"data:image/png;base64,`+pixel+`"}]`,
			`[{"type":"text","text":"result-marker"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+pixel+`"}}]`),
		want: func(from inbound, to outbound) outcome {
			if from.dialect != to.dialect && (to.dialect == neutral.Chat || to.dialect == neutral.Generate) {
				return moved("images and documents in tool results")
			}
			return proven
		},
		missing: func(c cell) string { return absent(c.asked, "result-marker", pixel) },
	},
	{
		name: "structured output", script: "fake-ok", wholes: true, streams: true, members: structured(),
		missing: func(c cell) string {
			if !json.Valid([]byte(c.text)) || !strings.Contains(c.text, "zone_marker") {
				return "JSON of the schema in " + c.text
			}
			return absent(c.asked, "zone_marker")
		},
	},
	{
		name: "reasoning", script: "fake-reasoning:8+words:6", wholes: true, streams: true, members: thinking(),
		missing: func(c cell) string {
			return cmp.Or(absent(c.reasoning, "the quick"), absent(c.text, "model="))
		},
	},
	{
		name: "reasoning signatures", script: "fake-reasoning:8+tool", wholes: true, again: true, members: thinkingWith("get_weather"),
		want: func(from inbound, to outbound) outcome {
			switch {
			case to.dialect == neutral.Chat, from.dialect == neutral.Chat:
				// No place in this dialect, and nobody who would sign in it.
				return dropped("reasoning signatures")
			default:
				return proven
			}
		},
		missing: func(c cell) string {
			if seal := fakeSeals[c.to.dialect]; seal != "" {
				return absent(c.asked, seal)
			}
			return "a seal"
		},
	},
	{
		name: "images", script: "fake-words:12", wholes: true,
		members: map[neutral.Dialect]string{
			neutral.Chat:      `"messages":[{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `"}}]}]`,
			neutral.Responses: `"input":[{"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,` + pixel + `"}]}]`,
			neutral.Messages:  `"messages":[{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}}]}]`,
		},
		missing: func(c cell) string { return cmp.Or(absent(c.asked, pixel), absent(c.text, "images=1")) },
	},
	{
		name: "images by address", script: "fake-words:12", wholes: true,
		members: map[neutral.Dialect]string{
			neutral.Chat:      `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://pictures.test/marker.png"}}]}]`,
			neutral.Responses: `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://pictures.test/marker.png"}]}]`,
			neutral.Messages:  `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://pictures.test/marker.png"}}]}]`,
		},
		want: ownOnly(map[neutral.Dialect]dialect.Feature{
			neutral.Chat: dialect.ImageURLs, neutral.Responses: dialect.ImageURLs, neutral.Messages: dialect.ImageURLs,
		}),
		missing: func(c cell) string { return absent(c.asked, "https://pictures.test/marker.png") },
	},
	{
		name: "documents", script: "fake-words:6", wholes: true,
		members: map[neutral.Dialect]string{
			neutral.Chat:      `"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + paper + `"}}]}]`,
			neutral.Responses: `"input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,` + paper + `"}]}]`,
			neutral.Messages:  `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + paper + `"}}]}]`,
		},
		missing: func(c cell) string { return absent(c.asked, paper) },
	},
	{
		name: "cache markers", script: "fake-words:6", wholes: true,
		members: map[neutral.Dialect]string{
			neutral.Chat:      `"messages":[{"role":"user","content":[{"type":"text","text":"prefix","cache_control":{"type":"ephemeral"}}]}]`,
			neutral.Messages:  `"messages":[{"role":"user","content":[{"type":"text","text":"prefix","cache_control":{"type":"ephemeral"}}]}]`,
			neutral.Responses: `"prompt_cache_key":"key-marker","input":[{"role":"user","content":"prefix"}]`,
		},
		want: func(from inbound, to outbound) outcome {
			switch {
			case from.dialect == to.dialect:
				return proven
			case from.dialect == neutral.Responses:
				return dropped("prompt_cache_key")
			case to.dialect == neutral.Messages, to.dialect == neutral.Converse:
				return proven
			default:
				return dropped("cache markers")
			}
		},
		missing: func(c cell) string {
			switch {
			case c.from.dialect == neutral.Responses:
				return absent(c.asked, "key-marker")
			case c.to.dialect == neutral.Converse:
				return absent(c.asked, "cachePoint")
			default:
				return absent(c.asked, "ephemeral")
			}
		},
	},
	{
		name: "usage", script: "fake-cached:5+written:3+reasoning:4+words:6", wholes: true, streams: true, members: asking("what does it cost", ""),
		missing: func(c cell) string { return c.usageMissing() },
	},
	{
		name: "stop at the limit", script: "fake-words:600", wholes: true, streams: true, members: asking("go on", ""), limit: 20,
		missing: func(c cell) string { return c.stopMissing(neutral.StopLength) },
	},
	{
		name: "content filter", script: "fake-words:6+finish:content_filter", wholes: true, streams: true, members: asking("something bad", ""),
		missing: func(c cell) string { return c.stopMissing(neutral.StopContentFilter, neutral.StopRefusal) },
	},
	{
		name: "refusals", script: "fake-refusal", wholes: true, streams: true, members: asking("something bad", ""),
		missing: func(c cell) string {
			if c.to.dialect == neutral.Generate || c.to.dialect == neutral.Converse {
				// These have no word for it: the model says no in an ordinary text.
				return absent(c.text, "I'm sorry")
			}
			if c.refusal == "" && c.Stop != neutral.StopRefusal && c.Stop != neutral.StopContentFilter {
				return fmt.Sprintf("a refusal: it reads %q, %s", c.text, c.Stop)
			}
			return absent(c.refusal+c.text, "I'm sorry")
		},
	},
	{
		name: "errors", script: "fake-400", wholes: true, streams: true, fails: true, members: asking("hello", ""),
		missing: func(c cell) string {
			if c.status < 400 || c.status > 499 || c.calls != 1 {
				return "the provider's refusal as the caller's own fault after one call"
			}
			return errorMissing(c.from, c.body)
		},
	},
	{
		name: "errors inside a stream", script: "fake-error:4", streams: true, fails: true, members: asking("hello", ""),
		missing: func(c cell) string {
			if c.status != 200 || c.reply.err == nil {
				return "an error event in place of the end"
			}
			terminators := map[neutral.Dialect]string{neutral.Chat: "[DONE]", neutral.Messages: "message_stop", neutral.Responses: "response.completed"}
			if strings.Contains(string(c.body), terminators[c.from.dialect]) {
				return "an end that is none of success"
			}
			return ""
		},
	},
	{
		name: "what one dialect alone has", script: "fake-words:6", wholes: true,
		members: map[neutral.Dialect]string{
			neutral.Chat:      `"n":2,"messages":[{"role":"user","content":"alone-marker"}]`,
			neutral.Responses: `"tools":[{"type":"web_search"}],"input":[{"role":"user","content":"alone-marker"}]`,
			neutral.Messages:  `"tools":[{"type":"web_search_20250305","name":"web_search"}],"messages":[{"role":"user","content":"alone-marker"}]`,
		},
		want: ownOnly(map[neutral.Dialect]dialect.Feature{
			neutral.Chat: dialect.SeveralChoices, neutral.Responses: dialect.ServerTools, neutral.Messages: dialect.ServerTools,
		}),
		missing: func(c cell) string { return absent(c.asked, "alone-marker") },
	},
}

// fakeSeals is what the scripted provider seals its reasoning with.
var fakeSeals = map[neutral.Dialect]string{
	neutral.Messages:  "EqQBCkYIfakesignature==",
	neutral.Generate:  "EqQBCkYIfakesignature==",
	neutral.Responses: "gAAAAABfakefakefake==",
	neutral.Converse:  "c2lnbmVkLWJ5LWEtZmFrZQ==",
}

// toolResults is a finished call and its result in each dialect.
func toolResults(chat, responses, messages string) map[neutral.Dialect]string {
	members := using("get_weather")
	members[neutral.Chat] = `"messages":[{"role":"user","content":"look"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_abc","type":"function","function":{"name":"get_weather","arguments":"{\"zone_marker\":\"x\"}"}}]},{"role":"tool","tool_call_id":"call_abc","content":` + chat + `}],"tools":[` + lookup("get_weather")[neutral.Chat] + `]`
	members[neutral.Responses] = `"input":[{"role":"user","content":"look"},{"type":"function_call","call_id":"call_abc","name":"get_weather","arguments":"{\"zone_marker\":\"x\"}"},{"type":"function_call_output","call_id":"call_abc","output":` + responses + `}],"tools":[` + lookup("get_weather")[neutral.Responses] + `]`
	members[neutral.Messages] = `"messages":[{"role":"user","content":"look"},{"role":"assistant","content":[{"type":"tool_use","id":"call_abc","name":"get_weather","input":{"zone_marker":"x"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_abc","content":` + messages + `}]}],"tools":[` + lookup("get_weather")[neutral.Messages] + `]`
	return members
}

func structured() map[neutral.Dialect]string {
	schema := `{"type":"object","properties":{"zone_marker":{"type":"string"}},"required":["zone_marker"],"additionalProperties":false}`
	members := asking("in JSON", "")
	members[neutral.Chat] += `,"response_format":{"type":"json_schema","json_schema":{"name":"zone","strict":true,"schema":` + schema + `}}`
	members[neutral.Responses] += `,"text":{"format":{"type":"json_schema","name":"zone","strict":true,"schema":` + schema + `}}`
	members[neutral.Messages] += `,"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}`
	return members
}

// thinking asks for reasoning. The question is an only turn, so that an answer can be
// put before it.
func thinking() map[neutral.Dialect]string { return reasoned(asking("think", "")) }

func thinkingWith(tool string) map[neutral.Dialect]string { return reasoned(using(tool)) }

func reasoned(members map[neutral.Dialect]string) map[neutral.Dialect]string {
	members[neutral.Chat] += `,"reasoning_effort":"low"`
	members[neutral.Responses] += `,"reasoning":{"effort":"low","summary":"auto"},"include":["reasoning.encrypted_content"]`
	members[neutral.Messages] += `,"thinking":{"type":"enabled","budget_tokens":1024}`
	return members
}

// absent names the first of some texts that is not in another.
func absent(in string, texts ...string) string {
	for _, text := range texts {
		if !strings.Contains(in, text) {
			return fmt.Sprintf("%.60q in %.400q", text, in)
		}
	}
	return ""
}

// repeated checks that a call and its result carry the same id.
func repeated(in, id string) string {
	if n := strings.Count(in, id); n < 2 {
		return fmt.Sprintf("the id %s of both call and result, it comes %d times", id, n)
	}
	return ""
}

func (c cell) callsMissing(n int) string {
	if len(c.toolCalls) != n || c.Stop != neutral.StopToolCalls {
		return fmt.Sprintf("%d calls: there are %v, stop %s", n, c.toolCalls, c.Stop)
	}
	seen := map[string]bool{}
	for _, call := range c.toolCalls {
		if call.ID == "" || seen[call.ID] || !strings.Contains(call.Arguments, "zone_marker") || !gjson.Valid(call.Arguments) {
			return fmt.Sprintf("an id of its own and whole arguments: %+v", call)
		}
		seen[call.ID] = true
	}
	return ""
}

func (c cell) stopMissing(any ...neutral.StopReason) string {
	for _, stop := range any {
		if c.Stop == stop {
			return ""
		}
	}
	return fmt.Sprintf("the stop reason %v: it is %s", any, c.Stop)
}

// usageMissing compares what the caller reads with what the provider said, as far as
// both dialects have a word for it.
func (c cell) usageMissing() string {
	u := c.Usage
	if !u.Input.Known() || u.Input.N < 8 || u.Output.N != 10 {
		return fmt.Sprintf("input and output: %+v", u)
	}
	if u.CachedInput.N != 5 {
		return fmt.Sprintf("5 cached tokens: %+v", u)
	}
	says := func(d neutral.Dialect, list ...neutral.Dialect) bool {
		for _, l := range list {
			if l == d {
				return true
			}
		}
		return false
	}
	writes := []neutral.Dialect{neutral.Chat, neutral.Messages, neutral.Converse}
	if says(c.from.dialect, writes...) && says(c.to.dialect, writes...) && u.CacheWrite5m.N+u.CacheWrite1h.N != 3 {
		return fmt.Sprintf("3 written tokens: %+v", u)
	}
	reasons := []neutral.Dialect{neutral.Chat, neutral.Responses, neutral.Generate}
	if says(c.from.dialect, reasons...) && says(c.to.dialect, reasons...) && u.Reasoning.N != 4 {
		return fmt.Sprintf("4 tokens of reasoning: %+v", u)
	}
	return ""
}

// errorMissing looks for an error of the dialect's own shape.
func errorMissing(from inbound, body []byte) string {
	doc := gjson.ParseBytes(body)
	if from.dialect == neutral.Messages && doc.Get("type").Str != "error" {
		return "the envelope of an error"
	}
	if doc.Get("error.type").Str == "" || doc.Get("error.message").Str == "" {
		return "an error's type and message"
	}
	return ""
}

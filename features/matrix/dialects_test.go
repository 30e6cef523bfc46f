package matrix

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/registry"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// inbound is a dialect that callers speak.
type inbound struct {
	name    string
	dialect neutral.Dialect
	path    string
	// reader is the protocol whose decoder reads this dialect's replies back: a reply
	// to a caller is judged as a client reads it, by code that the recorded answers of
	// providers hold to the dialect.
	reader catalog.Protocol
	// limit is the field that bounds the output.
	limit string
}

var inbounds = []inbound{
	{"chat", neutral.Chat, "/v1/chat/completions", catalog.OpenAI, "max_tokens"},
	{"responses", neutral.Responses, "/v1/responses", catalog.OpenAIResponses, "max_output_tokens"},
	{"messages", neutral.Messages, "/v1/messages", catalog.Anthropic, "max_tokens"},
}

// outbound is a dialect that providers speak.
type outbound struct {
	name     string
	dialect  neutral.Dialect
	protocol catalog.Protocol
	// base is what a base URL has behind the host.
	base   string
	region string
	// untested is why nothing can be proved yet.
	untested string
}

var outbounds = []outbound{
	{name: "openai", dialect: neutral.Chat, protocol: catalog.OpenAI, base: "/v1"},
	{name: "openai-responses", dialect: neutral.Responses, protocol: catalog.OpenAIResponses, base: "/v1"},
	{name: "anthropic", dialect: neutral.Messages, protocol: catalog.Anthropic},
	{name: "bedrock", dialect: neutral.Converse, protocol: catalog.Bedrock, region: "us-east-1"},
	{name: "gemini", dialect: neutral.Generate, protocol: catalog.Gemini, base: "/v1beta"},
}

// reply is an answer as a client of the caller's dialect reads it.
type reply struct {
	neutral.Answer
	text, reasoning, refusal string
	toolCalls                []neutral.ToolCall
	// seal is the signature or the encrypted content of the reasoning.
	seal neutral.OpaqueReasoning
	// err is why a stream did not end as it should.
	err error
}

// reading is a request that makes decoders give out what they have read.
func reading() *dialect.Request { return &dialect.Request{Dialect: "a client", Choices: 1} }

func (from inbound) readWhole(body []byte) reply {
	answer, f := registry.Outbound()[from.reader].DecodeWhole(reading(), body)
	r := reply{Answer: answer}
	if f != nil {
		r.err = f
	}
	return r.sorted()
}

func (from inbound) readStream(body []byte) reply {
	out := registry.Outbound()[from.reader]
	decoder, aggregate := out.NewStream(reading(), bytes.NewReader(body)), out.NewAggregate(reading())
	for {
		var c neutral.Chunk
		err := decoder.Next(&c)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = aggregate.Add(&c)
		}
		if err != nil {
			return reply{err: err}
		}
	}
	answer, err := aggregate.Answer()
	return reply{Answer: answer, err: err}.sorted()
}

func (r reply) sorted() reply {
	for _, p := range r.Output {
		switch p.Kind {
		case neutral.TextPart:
			r.text += p.Text
		case neutral.ReasoningPart:
			r.reasoning += p.Text
			if p.Opaque != (neutral.OpaqueReasoning{}) {
				r.seal = p.Opaque
			}
		case neutral.RefusalPart:
			r.refusal += p.Text
		case neutral.ToolCallPart:
			r.toolCalls = append(r.toolCalls, p.Call)
		}
	}
	return r
}

// next is the request that continues a conversation: the reply as the caller's client
// would send it back, the result of its call, and then another question.
func (from inbound) next(first string, body []byte) string {
	doc := gjson.ParseBytes(body)
	call := from.readWhole(body).toolCalls[0].ID
	list, turn := `"messages":[`, ""
	switch from.dialect {
	case neutral.Responses:
		output := strings.TrimSpace(doc.Get("output").Raw)
		list, turn = `"input":[`, output[1:len(output)-1]+`,{"type":"function_call_output","call_id":"`+call+`","output":"done"},`
	case neutral.Messages:
		turn = `{"role":"assistant","content":` + doc.Get("content").Raw + `},{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + call + `","content":"done"}]},`
	default:
		turn = doc.Get("choices.0.message").Raw + `,{"role":"tool","tool_call_id":"` + call + `","content":"done"},`
	}
	return strings.Replace(first, list, list+`{"role":"user","content":"before"},`+turn, 1)
}

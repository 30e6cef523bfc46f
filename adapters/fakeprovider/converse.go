package fakeprovider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
)

// converse is Amazon Bedrock's Converse protocol: the model in the path, requests
// signed, streams in Amazon's binary framing.
type converse struct{}

func (converse) register(mux *http.ServeMux, s *Server) {
	for _, operation := range []string{"converse", "converse-stream"} {
		mux.HandleFunc("POST /model/{model}/"+operation, func(w http.ResponseWriter, r *http.Request) {
			s.serveCall(converse{}, w, r)
		})
	}
}

// converseRequest are the members of a Converse body that matter here.
type converseRequest struct {
	System   []converseBlock `json:"system"`
	Messages []struct {
		Role    string          `json:"role"`
		Content []converseBlock `json:"content"`
	} `json:"messages"`
	Inference struct {
		MaxTokens int      `json:"maxTokens"`
		Stops     []string `json:"stopSequences"`
	} `json:"inferenceConfig"`
	ToolConfig struct {
		Tools []struct {
			Spec *struct {
				Name   string `json:"name"`
				Schema struct {
					JSON json.RawMessage `json:"json"`
				} `json:"inputSchema"`
			} `json:"toolSpec"`
		} `json:"tools"`
		Choice struct {
			Any  *struct{} `json:"any"`
			Tool *struct {
				Name string `json:"name"`
			} `json:"tool"`
		} `json:"toolChoice"`
	} `json:"toolConfig"`
	Output struct {
		Format struct {
			Structure struct {
				JSONSchema struct {
					Schema string `json:"schema"`
				} `json:"jsonSchema"`
			} `json:"structure"`
		} `json:"textFormat"`
	} `json:"outputConfig"`
}

// converseBlock is one block of a content: exactly one member is set.
type converseBlock struct {
	Text   string    `json:"text"`
	Image  *struct{} `json:"image"`
	Result *struct {
		Content []converseBlock `json:"content"`
	} `json:"toolResult"`
}

func (converse) parse(r *http.Request, body []byte) (request, error) {
	out := request{
		model: r.PathValue("model"), stream: strings.HasSuffix(r.URL.Path, "/converse-stream"),
		// There is no stream without usage.
		includeUsage: true,
	}
	if err := signed(r.Header, time.Now()); err != nil {
		return out, err
	}
	var in converseRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return out, fmt.Errorf("the body is not a Converse request: %w", err)
	}
	out.maxTokens, out.stops, out.messages = in.Inference.MaxTokens, in.Inference.Stops, len(in.Messages)
	textBytes := 0
	for _, block := range in.System {
		textBytes += len(block.Text)
	}
	for _, message := range in.Messages {
		said, results := out.read(message.Content)
		textBytes += len(said)
		out.lastText, out.toolAnswered = said, results > 0
		if message.Role == "user" && said != "" {
			out.lastUser = said
		}
	}
	for _, t := range in.ToolConfig.Tools {
		if t.Spec != nil { // else a cache point
			out.tools = append(out.tools, tool{name: t.Spec.Name, parameters: t.Spec.Schema.JSON})
		}
	}
	out.promptTokens = promptTokens(textBytes, len(in.Messages), out.images, len(out.tools))
	switch choice := in.ToolConfig.Choice; {
	case choice.Tool != nil:
		out.toolChoice = choice.Tool.Name
	case choice.Any != nil:
		out.toolChoice = "required"
	}
	if schema := in.Output.Format.Structure.JSONSchema.Schema; schema != "" {
		out.schema = json.RawMessage(schema)
	}
	return out, nil
}

// read joins the text of a content and counts its images, what tool results hold
// included.
func (r *request) read(content []converseBlock) (said string, results int) {
	var joined strings.Builder
	for _, block := range content {
		joined.WriteString(block.Text)
		if block.Image != nil {
			r.images++
		}
		if block.Result != nil {
			results++
			inner, _ := r.read(block.Result.Content)
			joined.WriteString(inner)
		}
	}
	return joined.String(), results
}

// errUnsigned is a request that does not say who sent it.
var errUnsigned = errors.New("the request is neither signed nor does it have an API key")

// maxSkew is how old a signature may be, or how far ahead of the server's clock.
const maxSkew = 15 * time.Minute

// signature is Signature Version 4's header. The server has no secret to check it
// with; what it says of itself must fit together.
var signature = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([A-Za-z0-9]+)/(\d{8})/[a-z0-9-]+/bedrock/aws4_request, ` +
	`SignedHeaders=((?:[a-z0-9-]+;)*[a-z0-9-]+), Signature=[0-9a-f]{64}$`)

func signed(h http.Header, now time.Time) error {
	authorization := h.Get("Authorization")
	if key, ok := strings.CutPrefix(authorization, "Bearer "); ok && key != "" {
		return nil
	}
	parts := signature.FindStringSubmatch(authorization)
	if parts == nil {
		return errUnsigned
	}
	at, err := time.Parse("20060102T150405Z", h.Get("X-Amz-Date"))
	if err != nil || at.Format("20060102") != parts[2] || now.Sub(at).Abs() > maxSkew {
		return errUnsigned
	}
	headers := ";" + parts[3] + ";"
	if !strings.Contains(headers, ";host;") || !strings.Contains(headers, ";x-amz-date;") {
		return errUnsigned
	}
	if h.Get("X-Amz-Security-Token") != "" && !strings.Contains(headers, ";x-amz-security-token;") {
		return errUnsigned
	}
	return nil
}

// accessKey is the id of the key that signed a request, empty for none.
func accessKey(authorization string) string {
	if parts := signature.FindStringSubmatch(authorization); parts != nil {
		return parts[1]
	}
	return ""
}

func (converse) streamType() string { return "application/vnd.amazon.eventstream" }

// idle is an event of a kind that clients do not know and pass by.
func (c converse) idle() []byte {
	return c.frame(nil, framing{}, 0, event{name: "waiting", data: []byte("{}")})
}

func (converse) malformedEvent() event {
	return event{name: "contentBlockDelta", data: []byte(`{"contentBlockIndex":0,"delta":{"text":"half`)}
}

// exceptionSuffix ends the names of frames that are exceptions.
const exceptionSuffix = "Exception"

// frame appends one binary frame. What the plan says of lines does not apply to it.
func (converse) frame(dst []byte, _ framing, _ int, e event) []byte {
	var m eventstream.Message
	if strings.HasSuffix(e.name, exceptionSuffix) {
		m.Headers.Set(eventstreamapi.ExceptionTypeHeader, eventstream.StringValue(e.name))
		m.Headers.Set(eventstreamapi.MessageTypeHeader, eventstream.StringValue(eventstreamapi.ExceptionMessageType))
	} else {
		m.Headers.Set(eventstreamapi.EventTypeHeader, eventstream.StringValue(e.name))
		m.Headers.Set(eventstreamapi.MessageTypeHeader, eventstream.StringValue(eventstreamapi.EventMessageType))
	}
	m.Headers.Set(eventstreamapi.ContentTypeHeader, eventstream.StringValue("application/json"))
	m.Payload = e.data
	b := bytes.NewBuffer(dst)
	// A buffer takes everything, and the headers are short.
	_ = eventstream.NewEncoder().Encode(b, m)
	return b.Bytes()
}

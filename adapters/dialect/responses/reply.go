package responses

import (
	"strings"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
	"github.com/sluice-gateway/sluice/domain/usage"
)

// reply is what the response object says of its request, whatever the answer.
type reply struct {
	req  *dialect.Request
	meta dialect.Meta
	// id is the provider's own where it speaks this dialect, else ours. A caller may
	// read the stored response by it.
	id      string
	created int64
	// echo is the part of the object that repeats the request.
	echo []byte
}

// idPrefix marks the ids of responses that were not made by a Responses provider.
const idPrefix = "resp_"

func newReply(req *dialect.Request, meta dialect.Meta) reply {
	r := reply{req: req, meta: meta, id: idPrefix + strings.ReplaceAll(meta.RequestID, "-", "")}
	// Our request ids are made of the time (UUIDv7), so no clock is needed here.
	if id, err := uuid.Parse(meta.RequestID); err == nil && id.Version() == 7 {
		r.created, _ = id.Time().UnixTime()
	}
	return r
}

// itemID is the id of the n-th item. It depends on the request alone.
func (r *reply) itemID(prefix string, n int) string {
	return prefix + strings.TrimPrefix(r.id, idPrefix) + "_" + itoa(n)
}

// edits puts right what a provider says of a request that is the caller's: the model's
// name (N23), and the response that it continues, which the provider was never told.
func (r *reply) edits(dst []rawjson.Edit, response gjson.Result) []rawjson.Edit {
	response.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "model":
			dst = append(dst, rawjson.Replace(v, rawjson.Quote(r.meta.Model)))
		case "previous_response_id":
			if id := r.req.Continues.ResponseID; id != "" {
				dst = append(dst, rawjson.Replace(v, rawjson.Quote(id)))
			}
		}
		return true
	})
	return dst
}

// echoed are the fields that a response repeats from its request, in OpenAI's order,
// with what they are when the request does not have them.
var echoed = []struct{ name, otherwise string }{
	{"instructions", "null"},
	{"max_output_tokens", "null"},
	{"metadata", "{}"},
	{"parallel_tool_calls", "true"},
	{"prompt_cache_key", "null"},
	{"reasoning", `{"effort":null,"summary":null}`},
	{"service_tier", `"default"`},
	{"store", "true"},
	{"temperature", "1"},
	{"text", `{"format":{"type":"text"}}`},
	{"tool_choice", `"auto"`},
	{"tools", "[]"},
	{"top_p", "1"},
	{"truncation", `"disabled"`},
	{"user", "null"},
}

// echoes is the part of the object that repeats the request, made once.
func (r *reply) echoes() []byte {
	if r.echo != nil {
		return r.echo
	}
	said := map[string]string{}
	if doc, ok := rawjson.Parse(r.req.Raw); ok {
		doc.ForEach(func(key, v gjson.Result) bool {
			if v.Type != gjson.Null {
				said[key.Str] = v.Raw
			}
			return true
		})
	}
	o := object{b: []byte("{")}
	for _, field := range echoed {
		v, ok := said[field.name]
		if !ok {
			v = field.otherwise
		}
		o.raw(field.name, []byte(v))
	}
	r.echo = o.b[1:]
	return r.echo
}

// response is what a response object says of its answer.
type response struct {
	status string
	// output is a JSON array; nil is an empty one.
	output []byte
	usage  usage.Usage
	stop   neutral.StopReason
	err    *apierror.Error
}

// write writes a response object.
func (r *reply) write(o *object, v response) {
	o.b = append(o.b, '{')
	o.text("id", r.id)
	o.text("object", "response")
	o.number("created_at", r.created)
	o.text("status", v.status)
	o.flag("background", false)
	if v.err != nil {
		writeError(o, v.err)
	} else {
		o.raw("error", []byte("null"))
	}
	if reason := incompleteReason(v.stop); reason != "" {
		o.open("incomplete_details", '{')
		o.text("reason", reason)
		o.close('}')
	} else {
		o.raw("incomplete_details", []byte("null"))
	}
	o.text("model", r.meta.Model)
	if v.output == nil {
		v.output = []byte("[]")
	}
	o.raw("output", v.output)
	if id := r.req.Continues.ResponseID; id != "" {
		o.text("previous_response_id", id)
	} else {
		o.raw("previous_response_id", []byte("null"))
	}
	o.b = append(append(o.b, ','), r.echoes()...)
	writeUsage(o, v.usage)
	o.b = append(o.b, '}')
}

// incompleteReason is why an answer stopped short, "" for one that did not.
func incompleteReason(s neutral.StopReason) string {
	switch s {
	case neutral.StopLength:
		return "max_output_tokens"
	case neutral.StopContentFilter, neutral.StopRefusal:
		// A refusal that was put into words of its own ends as usual; this is one of a
		// dialect that only has a stop reason for it.
		return "content_filter"
	default:
		return ""
	}
}

func statusOf(s neutral.StopReason) string {
	if incompleteReason(s) != "" {
		return "incomplete"
	}
	return "completed"
}

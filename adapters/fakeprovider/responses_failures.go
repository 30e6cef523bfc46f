package fakeprovider

import "encoding/json"

// failure is OpenAI's, whose two protocols share their errors.
func (responses) failure(f failure, call callFacts) (int, []byte) { return chat{}.failure(f, call) }

// errorEvent is a response that failed, as OpenAI ends one. Bare, it is an event named
// error, which needs no response before it.
func (responses) errorEvent(f failure, a *answer, bare bool) event {
	if f.kind == finishKind {
		failed := *a
		failed.finish = "error"
		b := append([]byte(`{"type":"response.failed","response":`), appendResponse(nil, &failed, "failed", true)...)
		return event{name: "response.failed", data: append(b, '}')}
	}
	_, body := chat{}.failure(f, callFacts{model: a.model})
	var said struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Param   string `json:"param"`
		Code    string `json:"code"`
	}
	if json.Unmarshal(errorMember(body), &said) != nil || said.Code == "" {
		// The envelope of a compatible provider, whose code may be a number.
		said.Code = said.Type
	}
	b := appendString([]byte(`"code":`), said.Code)
	b = appendString(append(b, `,"message":`...), said.Message)
	b = appendStringOr(append(b, `,"param":`...), said.Param, "null")
	if bare {
		return event{name: "error", data: append(append([]byte(`{"type":"error",`), b...), '}')}
	}
	head := []byte(`{"type":"response.failed","response":{"id":"resp_` + a.id + `","object":"response","status":"failed","incomplete_details":null,"model":`)
	head = appendString(head, a.model)
	head = append(append(head, `,"output":[],"error":{`...), b...)
	return event{name: "response.failed", data: append(head, "}}}"...)}
}

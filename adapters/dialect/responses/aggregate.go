package responses

import (
	"errors"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// errNotAggregable is a stream whose terminal event had no response in it. A decoder
// lets none pass.
var errNotAggregable = errors.New("responses: a stream without its response")

// NewAggregate puts a stream back together for a caller who asked for a whole
// answer (S11).
func (Outbound) NewAggregate(req *dialect.Request) dialect.Aggregate { return &aggregate{req: req} }

// aggregate waits for the terminal event, which has the whole response. Some servers
// leave its output empty, so the items that were said to be done are kept beside.
type aggregate struct {
	req      *dialect.Request
	response []byte
	items    []doneItem
}

type doneItem struct {
	index int64
	raw   []byte
}

// Add takes a chunk.
func (a *aggregate) Add(c *neutral.Chunk) error {
	switch c.Name {
	case "response.output_item.done", "response.completed", "response.incomplete":
	default:
		return nil
	}
	doc, ok := rawjson.Parse(c.Raw)
	if !ok || c.Dialect != neutral.Responses {
		return errNotResponses
	}
	var e frame
	e.read(doc)
	if e.response.IsObject() {
		a.response = []byte(e.response.Raw)
	} else if e.item.IsObject() && len(a.items) < maxItems {
		a.items = append(a.items, doneItem{e.output, []byte(e.item.Raw)})
	}
	return nil
}

// Answer is the whole reply.
func (a *aggregate) Answer() (neutral.Answer, error) {
	doc, ok := rawjson.Parse(a.response)
	if !ok {
		return neutral.Answer{}, errNotAggregable
	}
	body := a.complete(doc)
	answer, f := Outbound{}.DecodeWhole(a.req, body)
	if f != nil && f.Class != failure.EmptyCompletion {
		return neutral.Answer{}, f
	}
	answer.Streamed = true
	return answer, nil
}

// complete fills an output that was left empty.
func (a *aggregate) complete(doc gjson.Result) []byte {
	output := doc.Get("output")
	if output.Get("0").Exists() || len(a.items) == 0 {
		return a.response
	}
	slices.SortStableFunc(a.items, func(x, y doneItem) int { return int(x.index - y.index) })
	list := []byte("[")
	for i, it := range a.items {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, it.raw...)
	}
	list = append(list, ']')
	if !output.Exists() {
		return rawjson.Splice(nil, a.response, []rawjson.Edit{rawjson.Insert(a.response, doc, append([]byte(`"output":`), list...))})
	}
	return rawjson.Splice(nil, a.response, []rawjson.Edit{rawjson.Replace(output, list)})
}

package chat

import (
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// NewAggregate puts a stream back together for a caller who asked for a whole
// answer (S11).
func (Outbound) NewAggregate(req *dialect.Request) dialect.Aggregate {
	return &aggregate{foreign: foreign(req)}
}

// errNotAggregable is output whose pieces have no known way to be joined: audio.
var errNotAggregable = errors.New("chat: output that cannot be put together from a stream")

// aggregate joins chunks. Strings are joined as they stand in JSON: the escaped
// form of a text in two pieces is the two escaped forms, one after the other.
type aggregate struct {
	// members are the top-level ones but choices, in the order of their first coming.
	members members
	choices []*wholeChoice
	tally   neutral.Tally
	foreign bool
}

// members is an object that is being written.
type members []field

type field struct {
	key string
	raw []byte
}

// set keeps the last value that is not null; the key keeps its place.
func (m *members) set(key string, v gjson.Result) {
	at := slices.IndexFunc(*m, func(f field) bool { return f.key == key })
	switch {
	case at < 0:
		*m = append(*m, field{key: strings.Clone(key), raw: []byte(v.Raw)})
	case !rawjson.IsNull(v):
		(*m)[at].raw = append((*m)[at].raw[:0], v.Raw...)
	}
}

// first keeps the first value.
func (m *members) first(key string, v gjson.Result) {
	if !slices.ContainsFunc(*m, func(f field) bool { return f.key == key }) {
		m.set(key, v)
	}
}

func (m members) write(dst []byte) []byte {
	for _, f := range m {
		dst = member(dst, f.key, f.raw)
	}
	return dst
}

// member appends one member to an open object.
func member(dst []byte, key string, raw []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, rawjson.Quote(key)...)
	dst = append(dst, ':')
	return append(dst, raw...)
}

// array is a list that is being written.
type array struct{ items []byte }

func (a *array) add(list gjson.Result) {
	list.ForEach(func(_, v gjson.Result) bool {
		if len(a.items) > 0 {
			a.items = append(a.items, ',')
		}
		a.items = append(a.items, v.Raw...)
		return true
	})
}

func (a *array) raw() []byte { return append(append([]byte("["), a.items...), ']') }

// Add joins a chunk on.
func (a *aggregate) Add(c *neutral.Chunk) error {
	doc, ok := rawjson.Parse(c.Raw)
	if !ok || c.Dialect != neutral.Chat {
		return errNotChat
	}
	a.tally.Add(c)
	var err error
	doc.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "choices":
			v.ForEach(func(_, v gjson.Result) bool {
				err = a.choice(v).add(v)
				return err == nil
			})
		case "id", "created", "model", "object":
			a.members.first(key.Str, v)
		case "error", "obfuscation":
			// No error, and padding against eavesdroppers of a stream.
		default:
			a.members.set(key.Str, v)
		}
		return err == nil
	})
	return err
}

func (a *aggregate) choice(v gjson.Result) *wholeChoice {
	index, _ := rawjson.Integer(v.Get("index"))
	for _, c := range a.choices {
		if c.index == index {
			return c
		}
	}
	c := &wholeChoice{index: index}
	a.choices = append(a.choices, c)
	return c
}

// Answer is the whole reply.
func (a *aggregate) Answer() (neutral.Answer, error) {
	slices.SortFunc(a.choices, func(x, y *wholeChoice) int { return int(x.index - y.index) })
	body := []byte("{")
	for _, f := range a.members {
		if f.key == "object" {
			f.raw = []byte(`"chat.completion"`)
		}
		body = member(body, f.key, f.raw)
	}
	list := []byte("[")
	for i, c := range a.choices {
		if i > 0 {
			list = append(list, ',')
		}
		list = c.write(list)
	}
	body = append(member(body, "choices", append(list, ']')), '}')
	var output []neutral.Part
	if a.foreign {
		output = outputOf(gjson.GetBytes(body, "choices"))
	}
	return neutral.Answer{
		Dialect: neutral.Chat, Raw: body, Output: output, Usage: a.tally.Usage, Stop: a.tally.Stop,
		FirstOutput: a.tally.FirstOutput, ToolCalls: a.tally.ToolCalls, OutputBytes: a.tally.OutputBytes,
		Empty: empty(&a.tally), Streamed: true,
	}, nil
}

package gemini

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
	"github.com/sluice-gateway/sluice/domain/failure"
)

const (
	// maxPartialNodes and maxPartialBytes bound the arguments of one call that come in
	// pieces: they wait until the call is whole, because a path may lead back into what
	// a stream of JSON text has already closed.
	maxPartialNodes = 10_000
	maxPartialBytes = 4 << 20
)

// partialCall puts the arguments of one call together.
type partialCall struct {
	// whole are arguments that came in one piece, a view of their response.
	whole []byte
	root  argument
	nodes int
	bytes int
}

// argument is a node of arguments that are being put together: an object or a list
// with members, else a value.
type argument struct {
	key     string
	list    bool
	members []*argument
	// text is a string so far, raw any other value.
	text *strings.Builder
	raw  string
}

// add takes pieces: each a path and a value, of which a string may go on.
func (c *partialCall) add(pieces gjson.Result) (f *failure.Failure) {
	if rawjson.IsNull(pieces) {
		return nil
	}
	if !pieces.IsArray() {
		return payload("malformed_arguments")
	}
	pieces.ForEach(func(_, v gjson.Result) bool {
		f = c.piece(v)
		return f == nil
	})
	return f
}

func (c *partialCall) piece(v gjson.Result) *failure.Failure {
	at, ok := c.at(v.Get("jsonPath").Str)
	if !ok {
		return payload("malformed_arguments")
	}
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "stringValue":
			if at.text == nil {
				at.text = &strings.Builder{}
			}
			at.text.WriteString(v.Str)
			c.bytes += len(v.Str)
		case "numberValue", "boolValue":
			at.raw = strings.Clone(v.Raw)
			c.bytes += len(v.Raw)
		case "nullValue":
			at.raw = "null"
		}
		return true
	})
	if c.nodes > maxPartialNodes || c.bytes > maxPartialBytes {
		return payload("arguments_too_large")
	}
	return nil
}

// at is the node at a path such as $.recipe.steps[0], made where it is not yet.
func (c *partialCall) at(path string) (*argument, bool) {
	rest, ok := strings.CutPrefix(path, "$")
	if !ok || len(path) > maxPathBytes {
		return nil, false
	}
	node := &c.root
	for depth := 0; rest != ""; depth++ {
		var step string
		var index bool
		if step, index, rest, ok = nextStep(rest); !ok || depth >= rawjson.MaxDepth {
			return nil, false
		}
		if node, ok = c.child(node, step, index); !ok {
			return nil, false
		}
	}
	return node, node != &c.root
}

// maxPathBytes is far above the paths that a schema of the allowed depth has.
const maxPathBytes = 8 << 10

// nextStep cuts the first step off a path: .name, ['name'] or [0].
func nextStep(path string) (step string, index bool, rest string, ok bool) {
	if after, found := strings.CutPrefix(path, "."); found {
		n := strings.IndexAny(after, ".[")
		if n < 0 {
			n = len(after)
		}
		return after[:n], false, after[n:], n > 0
	}
	for _, quote := range []string{"'", `"`} {
		if after, found := strings.CutPrefix(path, "["+quote); found {
			step, rest, ok = strings.Cut(after, quote+"]")
			return step, false, rest, ok
		}
	}
	after, found := strings.CutPrefix(path, "[")
	step, rest, ok = strings.Cut(after, "]")
	return step, true, rest, found && ok
}

// child is a member of an object or an element of a list. Elements come in order: a
// list is not made longer than by one.
func (c *partialCall) child(node *argument, step string, index bool) (*argument, bool) {
	if len(node.members) > 0 && node.list != index {
		return nil, false
	}
	node.list = index
	if index {
		n, err := strconv.Atoi(step)
		if err != nil || n < 0 || n > len(node.members) {
			return nil, false
		}
		if n < len(node.members) {
			return node.members[n], true
		}
	} else if at := slices.IndexFunc(node.members, func(m *argument) bool { return m.key == step }); at >= 0 {
		return node.members[at], true
	}
	c.nodes++
	c.bytes += len(step)
	m := &argument{key: strings.Clone(step)}
	node.members = append(node.members, m)
	return m, true
}

// arguments is the JSON text of the whole.
func (c *partialCall) arguments() []byte {
	switch {
	case c.whole != nil:
		return c.whole
	case len(c.root.members) == 0:
		// A tool without parameters is called with nothing; that is an object.
		return []byte("{}")
	}
	return c.root.append(nil)
}

func (a *argument) append(dst []byte) []byte {
	switch {
	case len(a.members) > 0 && a.list:
		dst = append(dst, '[')
		for i, m := range a.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = m.append(dst)
		}
		return append(dst, ']')
	case len(a.members) > 0:
		dst = append(dst, '{')
		for i, m := range a.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = rawjson.AppendQuoted(dst, m.key)
			dst = append(dst, ':')
			dst = m.append(dst)
		}
		return append(dst, '}')
	case a.text != nil:
		return rawjson.AppendQuoted(dst, a.text.String())
	case a.raw != "":
		return append(dst, a.raw...)
	default:
		return append(dst, "null"...)
	}
}

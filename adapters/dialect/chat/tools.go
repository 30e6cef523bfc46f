package chat

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/adapters/dialect/rawjson"
)

// calls are the tool calls of one choice, in the order in which they began. It
// gives each fragment of a stream its place: dense from 0, whatever the provider
// numbers (P11). Seen on the wire: no index at all, every parallel call at 0,
// counting from 1, fragments without an id that open a new index each.
type calls struct {
	list []call
}

type call struct {
	id string
	// upstream is the provider's index, noIndex where it gave none.
	upstream int64
	args     rawjson.Balance
}

const noIndex = -1

// place is the position of the call that a fragment belongs to, and whether it
// begins there. ok is false when there are too many.
func (c *calls) place(fragment gjson.Result) (at int, begins, ok bool) {
	id := fragment.Get("id").Str
	upstream, hasIndex := rawjson.Integer(fragment.Get("index"))
	if !hasIndex || upstream < 0 {
		upstream = noIndex
	}
	// Whole calls without id and index can only be told apart by each having a name.
	nameless := fragment.Get("function.name").Str == ""
	if id != "" || upstream != noIndex || nameless {
		if at := c.find(id, upstream); at >= 0 {
			return at, false, true
		}
	}
	if len(c.list) >= maxToolCalls {
		return 0, false, false
	}
	// The id is kept beyond the frame that it came in.
	c.list = append(c.list, call{id: strings.Clone(id), upstream: upstream})
	return len(c.list) - 1, true, true
}

// find is the call that a fragment continues, or -1. A new id opens a new call even
// at an index that is taken; without an id it is the last call at that index, and
// without either the last call.
func (c *calls) find(id string, upstream int64) int {
	for at := len(c.list) - 1; at >= 0; at-- {
		known := &c.list[at]
		switch {
		case id != "" && known.id != "":
			if known.id == id && (upstream == noIndex || known.upstream == upstream) {
				return at
			}
		case upstream == noIndex, known.upstream == noIndex, known.upstream == upstream:
			if id != "" && known.upstream != upstream {
				continue
			}
			return at
		}
	}
	return -1
}

// cut reports whether a call's arguments stop in their middle.
func (c *calls) cut() bool {
	for i := range c.list {
		if c.list[i].args.Open() {
			return true
		}
	}
	return false
}

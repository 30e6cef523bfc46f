package converse

import (
	"slices"

	"github.com/sluice-gateway/sluice/domain/neutral"
)

// offer are the tools of a request as this dialect needs them.
type offer struct {
	tools  []neutral.ToolDefinition
	choice neutral.ToolChoice
	// forbidden says that the tools are there for the history's sake and must not be
	// called.
	forbidden bool
}

// offerOf works the tools out. A history with calls in it is refused without tools,
// and there is no choice of none: where a caller offers no tool or forbids them all,
// those of the history are named and the system prompt says not to call them.
func offerOf(in *neutral.Request, turns []neutral.Message) offer {
	o := offer{tools: in.Tools, choice: in.Choice}
	if len(in.Tools) > 0 && in.Choice.Mode != neutral.ChoiceNone {
		return o
	}
	called := calledTools(turns)
	if len(called) == 0 {
		return offer{}
	}
	if len(o.tools) == 0 {
		o.tools = called
	}
	o.choice, o.forbidden = neutral.ToolChoice{}, true
	return o
}

// calledTools are the tools that a history calls, in the order of their first call.
func calledTools(turns []neutral.Message) []neutral.ToolDefinition {
	var tools []neutral.ToolDefinition
	add := func(name string) {
		if name != "" && !slices.ContainsFunc(tools, func(t neutral.ToolDefinition) bool { return t.Name == name }) {
			tools = append(tools, neutral.ToolDefinition{Name: name})
		}
	}
	results := false
	for _, m := range turns {
		for i := range m.Parts {
			switch p := &m.Parts[i]; p.Kind {
			case neutral.ToolCallPart:
				add(p.Call.Name)
			case neutral.ToolResultPart:
				results = true
				add(p.Result.Name)
			}
		}
	}
	if results && len(tools) == 0 {
		add("tool")
	}
	return tools
}

func (w *writer) tools(o offer) {
	if len(o.tools) == 0 {
		return
	}
	w.raw(`,"toolConfig":{"tools":[`)
	for i := range o.tools {
		w.comma(i).tool(&o.tools[i])
	}
	w.raw(`]`)
	switch o.choice.Mode {
	case neutral.ChoiceAuto:
		w.raw(`,"toolChoice":{"auto":{}}`)
	case neutral.ChoiceAny:
		w.raw(`,"toolChoice":{"any":{}}`)
	case neutral.ChoiceNamed:
		w.raw(`,"toolChoice":{"tool":{"name":`).quoted(o.choice.Name).raw(`}}`)
	case neutral.ChoiceDefault, neutral.ChoiceNone:
	}
	w.raw(`}`)
}

func (w *writer) tool(t *neutral.ToolDefinition) {
	w.raw(`{"toolSpec":{"name":`).quoted(t.Name)
	if !blank(t.Description) {
		w.raw(`,"description":`).quoted(t.Description)
	}
	schema := string(t.Schema)
	if schema == "" {
		schema = `{"type":"object","properties":{}}`
	}
	w.raw(`,"inputSchema":{"json":`).raw(schema).raw(`}`)
	if t.Strict != nil && *t.Strict && w.model.strictTools {
		w.raw(`,"strict":true`)
	}
	w.raw(`}}`)
	if w.model.cacheTools {
		w.cache(t.Cache)
	}
}

package fakeprovider

import (
	"encoding/json"
	"strings"
)

// Markers are what a prompt may hold to steer the answer to it: a coding agent
// chooses its own model names and makes calls of its own between those of its task,
// so neither a name nor a count can tell which of its calls is to use which tool.
const (
	// ToolMarker in the last user message makes a request with tools call the
	// first of them although tool_choice is "auto".
	ToolMarker = "[tool]"
	// toolMarkerHead opens the form that chooses: "[tool NAME {ARGUMENTS}]".
	toolMarkerHead = "[tool "
	// sayMarkerHead opens "[say WORDS]". In the last message, a tool's result too,
	// it makes the answer WORDS: what a model would say that has read them there.
	sayMarkerHead = "[say "
)

// ToolMarkerFor is the marker that makes a request that offers this tool call it with
// these arguments, a JSON object.
func ToolMarkerFor(name, arguments string) string {
	return toolMarkerHead + name + " " + arguments + "]"
}

// SayMarker is the marker that is answered with these words. They hold no bracket.
func SayMarker(words string) string { return sayMarkerHead + words + "]" }

// markedCall is the call that a text asks for by a marker, if the tool is offered.
// The arguments are compact JSON.
func markedCall(text string, offered []tool) (t tool, arguments string, ok bool) {
	_, marked, found := strings.Cut(text, toolMarkerHead)
	if !found {
		return tool{}, "", false
	}
	name, rest, _ := strings.Cut(marked, " ")
	var value json.RawMessage
	if json.NewDecoder(strings.NewReader(rest)).Decode(&value) != nil {
		return tool{}, "", false
	}
	for _, t := range offered {
		if t.name == name {
			return t, string(value), true
		}
	}
	return tool{}, "", false
}

// markedWords are the words that a text asks to be answered with.
func markedWords(text string) ([]string, bool) {
	_, marked, found := strings.Cut(text, sayMarkerHead)
	if !found {
		return nil, false
	}
	said, _, closed := strings.Cut(marked, "]")
	fields := strings.Fields(said)
	if !closed || len(fields) == 0 {
		return nil, false
	}
	return words(fields, len(fields), nil), true
}

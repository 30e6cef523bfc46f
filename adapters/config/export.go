package config

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// Export writes the configuration as a file, in a stable order; loading it gives
// back the same catalog (C13).
func Export(state *catalog.State) []byte {
	text, err := json.Marshal(document{Version: FormatVersion, Objects: state.Objects()})
	if err != nil {
		panic(fmt.Sprintf("config: objects cannot be encoded: %v", err)) // plain structs
	}
	// JSON is YAML: read as nodes, it keeps the order of the fields and gets the
	// usual indented form by dropping its braces and quotes. The encoder puts quotes
	// back where a text would be read as something else ("3", "true").
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		panic(fmt.Sprintf("config: JSON is not read as YAML: %v", err))
	}
	restyle(&root)
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		panic(fmt.Sprintf("config: objects cannot be written: %v", err))
	}
	return b.Bytes()
}

// restyle indents everything but the innermost: a list of words, a small mapping
// inside a list.
func restyle(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		restyle(child)
		if n.Kind == yaml.SequenceNode && small(child) {
			child.Style = yaml.FlowStyle
		}
	}
	if n.Kind == yaml.SequenceNode && small(n) {
		n.Style = yaml.FlowStyle
	}
}

// small is a node of a few plain values.
func small(n *yaml.Node) bool {
	const most = 8
	if n.Kind == yaml.ScalarNode || len(n.Content) > most {
		return false
	}
	for _, child := range n.Content {
		if child.Kind != yaml.ScalarNode {
			return false
		}
	}
	return true
}

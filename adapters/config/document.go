package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDocumentDepth bounds the nesting of an object; the deepest one there is has
// five levels.
const maxDocumentDepth = 32

// Document is one object of the configuration as JSON while it is edited. It is
// read by the decoder of the file, so that an object means the same, and is refused
// in the same words, wherever it comes from.
type Document struct{ root *yaml.Node }

// DocumentError refuses a document.
type DocumentError struct{ Problems []Problem }

func (e *DocumentError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = strings.TrimPrefix(p.Path+": "+p.Reason, ": ")
	}
	return strings.Join(lines, "; ")
}

func refuseDocument(path, format string, args ...any) error {
	return &DocumentError{Problems: []Problem{{Path: path, Reason: fmt.Sprintf(format, args...)}}}
}

// ParseDocument reads JSON strictly: one object, nothing after it. A field that
// stands twice is told by Decode.
func ParseDocument(body []byte) (Document, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	root, err := readNode(decoder, 0)
	if err != nil {
		if _, ours := errors.AsType[*DocumentError](err); ours {
			return Document{}, err
		}
		return Document{}, refuseDocument("", "the body is not JSON")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Document{}, refuseDocument("", "the body goes on after its JSON value")
	}
	if root.Kind != yaml.MappingNode {
		return Document{}, refuseDocument("", "the body must be a JSON object, not %s", kindOf(root))
	}
	return Document{root}, nil
}

// DocumentOf is an object of the catalog as a document.
func DocumentOf(object any) Document {
	text, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("config: %T cannot be encoded: %v", object, err)) // plain structs
	}
	doc, err := ParseDocument(text)
	if err != nil {
		panic(fmt.Sprintf("config: %T is encoded as no object: %v", object, err))
	}
	return doc
}

// NewDocument is an empty object.
func NewDocument() Document { return Document{&yaml.Node{Kind: yaml.MappingNode}} }

func readNode(decoder *json.Decoder, depth int) (*yaml.Node, error) {
	if depth > maxDocumentDepth {
		return nil, refuseDocument("", "the body is nested more than %d levels deep", maxDocumentDepth)
	}
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		return readNested(decoder, t, depth)
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: t}, nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(t.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(t)}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, nil
	}
}

// readNested reads the values of an object (names and values in turn, as a YAML
// mapping keeps them) or of a list, up to its end.
func readNested(decoder *json.Decoder, open json.Delim, depth int) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if open == '[' {
		n.Kind = yaml.SequenceNode
	}
	for decoder.More() {
		child, err := readNode(decoder, depth+1)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, child)
	}
	_, err := decoder.Token()
	return n, err
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// at is the index of a field's value, or -1.
func (d Document) at(name string) int {
	for i := 0; i+1 < len(d.root.Content); i += 2 {
		if d.root.Content[i].Value == name {
			return i + 1
		}
	}
	return -1
}

// Has reports whether the document has a field, also one that is null.
func (d Document) Has(name string) bool { return d.at(name) >= 0 }

// Set gives a field the value that it has in another document, or takes it away
// where that has none.
func (d Document) Set(name string, from Document) {
	d.Remove(name)
	if i := from.at(name); i >= 0 {
		d.root.Content = append(d.root.Content, from.root.Content[i-1], from.root.Content[i])
	}
}

// SetText gives a field a text.
func (d Document) SetText(name, text string) {
	d.Remove(name)
	d.root.Content = append(d.root.Content,
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name},
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text})
}

// Remove takes a field away, however often it stands there.
func (d Document) Remove(name string) {
	for i := d.at(name); i >= 0; i = d.at(name) {
		d.root.Content = append(d.root.Content[:i-1:i-1], d.root.Content[i+1:]...)
	}
}

// Int takes a whole number out of the document: nil where the field is absent or
// null.
func (d Document) Int(name string) (*int64, error) {
	i := d.at(name)
	if i < 0 || isNull(d.root.Content[i]) {
		d.Remove(name)
		return nil, nil
	}
	field := new(int64)
	reader := decoder{lines: map[string]int{}}
	reader.value(d.root.Content[i], name, reflect.ValueOf(field).Elem())
	if len(reader.problems) > 0 {
		return nil, &DocumentError{Problems: reader.problems}
	}
	d.Remove(name)
	return field, nil
}

// Child is the object in a field; an empty one where there is none.
func (d Document) Child(name string) Document {
	if i := d.at(name); i >= 0 && d.root.Content[i].Kind == yaml.MappingNode {
		return Document{d.root.Content[i]}
	}
	return NewDocument()
}

// SetChild puts an object into a field.
func (d Document) SetChild(name string, child Document) {
	d.Remove(name)
	d.root.Content = append(d.root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, child.root)
}

// Merge is the document after a merge patch (RFC 7386): a field that the patch
// leaves out is unchanged, null takes it away, a list is replaced whole (C9).
func (d Document) Merge(patch Document) Document { return Document{merge(d.root, patch.root)} }

func merge(target, patch *yaml.Node) *yaml.Node {
	if patch.Kind != yaml.MappingNode {
		return patch
	}
	merged := Document{&yaml.Node{Kind: yaml.MappingNode}}
	if target != nil && target.Kind == yaml.MappingNode {
		merged.root.Content = append(merged.root.Content, target.Content...)
	}
	for i := 0; i+1 < len(patch.Content); i += 2 {
		key, value := patch.Content[i], patch.Content[i+1]
		var have *yaml.Node
		if at := merged.at(key.Value); at >= 0 {
			have = merged.root.Content[at]
		}
		merged.Remove(key.Value)
		if !isNull(value) {
			merged.root.Content = append(merged.root.Content, key, merge(have, value))
		}
	}
	return merged.root
}

// Decode reads the document into a struct of the catalog, by its json tags. The
// error is a *DocumentError with every problem: an unknown field is one, never
// dropped. null is as if it were left out.
func (d Document) Decode(into any) error {
	reader := decoder{lines: map[string]int{}}
	reader.structure(d.root, "", reflect.ValueOf(into).Elem())
	if len(reader.problems) > 0 {
		return &DocumentError{Problems: reader.problems}
	}
	return nil
}

package config

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
	"go.yaml.in/yaml/v3"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// decoder reads YAML nodes into the structs of the catalog, by their json tags,
// and is strict: the yaml package's own decoder stops at the first broken value,
// turns numbers into text, prints values and names Go types.
type decoder struct {
	// lines is where each path stands.
	lines    map[string]int
	problems []Problem
}

func (d *decoder) decode(root *yaml.Node, doc *document) {
	d.structure(root, "", reflect.ValueOf(doc).Elem())
}

// line is where a path stands, or the nearest thing around it.
func (d *decoder) line(path string) int {
	for {
		if line, ok := d.lines[path]; ok {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

func (d *decoder) fail(path, format string, args ...any) {
	d.problems = append(d.problems, Problem{Line: d.line(path), Path: path, Reason: fmt.Sprintf(format, args...)})
}

var (
	decimalType  = reflect.TypeFor[decimal.Decimal]()
	durationType = reflect.TypeFor[catalog.Duration]()
	// plainNumber leaves out exponents and signs of other notations, which nobody
	// writes into a price list on purpose.
	plainNumber = regexp.MustCompile(`^-?[0-9]{1,30}(\.[0-9]{1,30})?$`)
)

// value decodes one node. What is null or empty is as if it were left out.
func (d *decoder) value(n *yaml.Node, path string, v reflect.Value) {
	d.lines[path] = n.Line
	switch {
	case n.Kind == yaml.AliasNode:
		d.fail(path, "YAML anchors are not read here: write the value out")
		return
	case n.Style&yaml.TaggedStyle != 0:
		d.fail(path, "YAML tags are not read here")
		return
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		if strings.HasSuffix(path, "]") {
			d.fail(path, "is empty")
		}
		return
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, path, v.Elem())
		return
	}
	switch {
	case v.Type() == decimalType || v.Type() == durationType:
		d.text(n, path, v)
	case v.Kind() == reflect.Struct:
		d.structure(n, path, v)
	case v.Kind() == reflect.Slice:
		d.list(n, path, v)
	default:
		d.scalar(n, path, v)
	}
}

func (d *decoder) list(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.fail(path, "must be a list, not %s", kindOf(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.value(item, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
	}
}

func (d *decoder) structure(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.fail(path, "must be a mapping, not %s", kindOf(n))
		return
	}
	fields := fieldsOf(v.Type())
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field, known := fields[key.Value]
		if key.Kind != yaml.ScalarNode || !known {
			d.unknown(key, path, v.Type(), fields)
			continue
		}
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		if first, twice := seen[key.Value]; twice {
			reason := "stands twice"
			if first > 0 { // JSON has no lines here
				reason += fmt.Sprintf(", first on line %d", first)
			}
			d.problems = append(d.problems, Problem{Line: key.Line, Path: at, Reason: reason})
			continue
		}
		seen[key.Value] = key.Line
		d.value(value, at, v.FieldByIndex(field))
	}
}

// secretive name credentials.
var secretive = []reflect.Type{
	reflect.TypeFor[catalog.ProviderKey](), reflect.TypeFor[catalog.Webhook](), reflect.TypeFor[catalog.TenantWebhook](),
}

// unknown refuses a field that would otherwise be dropped without a word. Beside
// a credential's name it is most likely the credential (C14).
func (d *decoder) unknown(key *yaml.Node, path string, in reflect.Type, fields map[string][]int) {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	name := "this"
	if key.Kind == yaml.ScalarNode {
		name = short(key.Value)
	}
	reason := fmt.Sprintf("unknown field %s; known here: %s", name, strings.Join(names, ", "))
	if slices.Contains(secretive, in) {
		reason += "; a secret never stands in this file: name the environment variable that holds it"
	}
	d.problems = append(d.problems, Problem{Line: key.Line, Path: path, Reason: reason})
}

// short quotes a name from the file; it may be anything.
func short(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}

// fieldsOf maps a struct's json names to its fields, embedded ones included.
func fieldsOf(t reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.Anonymous && name != "" && name != "-" {
			fields[name] = f.Index
		}
	}
	return fields
}

// text decodes what the catalog keeps as exact text: decimals and durations.
func (d *decoder) text(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.fail(path, "must be one value, not %s", kindOf(n))
		return
	}
	err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value))
	if v.Type() == decimalType {
		if err != nil || !plainNumber.MatchString(n.Value) {
			d.fail(path, `must be a decimal number like "3.00"`)
		}
		return
	}
	switch {
	case err != nil || n.ShortTag() != "!!str":
		d.fail(path, "must be a duration with its unit, like 500ms or 20s")
	case time.Duration(v.Int()) <= 0:
		d.fail(path, "must be longer than 0; leave it out for the default")
	}
}

// positive are the numbers whose zero means "not set": writing one would quietly
// become the default.
var positive = map[string]bool{
	"max_attempts": true, "failures_to_open": true, "concurrency_bound": true,
	"requests_per_minute": true, "tokens_per_minute": true, "requests": true, "tokens": true,
	"per_hour": true, "per_day": true, "per_model.total": true, "overall.total": true,
}

// isPositive looks a field up by its name, or by its name and what it stands in.
func isPositive(path string) bool {
	parts := strings.Split(path, ".")
	last := len(parts) - 1
	return positive[parts[last]] || last > 0 && positive[parts[last-1]+"."+parts[last]]
}

func (d *decoder) scalar(n *yaml.Node, path string, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		d.fail(path, "must be one value, not %s", kindOf(n))
		return
	}
	tag := n.ShortTag()
	switch v.Kind() {
	case reflect.String:
		d.word(n, path, v)
	case reflect.Bool:
		if tag != "!!bool" {
			d.fail(path, "must be true or false, not %s", kindOf(n))
			return
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Int, reflect.Int64:
		number, err := strconv.ParseInt(n.Value, 10, 64)
		switch {
		case tag == "!!float" && errors.Is(err, strconv.ErrRange): // more than 64 bits
			d.fail(path, "is too large a number")
		case tag != "!!int":
			d.fail(path, "must be a whole number, not %s", kindOf(n))
		case errors.Is(err, strconv.ErrRange) || err == nil && v.OverflowInt(number):
			d.fail(path, "is too large a number")
		case err != nil: // as YAML writes numbers too: 0x10, 1_000
			d.fail(path, "must be a whole number in decimal digits")
		case number == 0 && isPositive(path):
			d.fail(path, "must be more than 0; leave it out for the default")
		default:
			v.SetInt(number)
		}
	case reflect.Float64:
		number, err := strconv.ParseFloat(n.Value, 64)
		switch {
		case tag != "!!int" && tag != "!!float":
			d.fail(path, "must be a number, not %s", kindOf(n))
			return
		case err != nil || math.IsNaN(number) || math.IsInf(number, 0):
			d.fail(path, "must be a finite number in decimal digits")
			return
		}
		v.SetFloat(number)
	default:
		panic(fmt.Sprintf("config: %s has kind %s", path, v.Kind())) // a new kind of field in the catalog
	}
}

// word decodes text. A number or a boolean that was meant as text must be quoted:
// YAML has already rewritten what 010 or yes mean.
func (d *decoder) word(n *yaml.Node, path string, v reflect.Value) {
	tag := n.ShortTag()
	amount := strings.HasSuffix(path, "_usd")
	switch {
	case amount && !plainNumber.MatchString(n.Value):
		d.fail(path, `must be an amount like "500.00"`)
	// A date is text that YAML recognises: equivalence.on.
	case amount, tag == "!!str", tag == "!!timestamp":
		if n.Value == "" {
			d.fail(path, "is empty: give it a value or leave it out")
		}
		v.SetString(n.Value)
	default:
		d.fail(path, "must be text, not %s: put it in quotes", kindOf(n))
	}
}

// kindOf names what a node is, never its value.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!int":
		return "a whole number"
	case "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "null"
	}
	return "text"
}

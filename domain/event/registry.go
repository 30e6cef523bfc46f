// Package event is the registry of everything that may stand in the log: literal
// type names, integer versions, and how old versions become the newest (E8).
//
// A name is never taken from a Go type: renaming a struct must not change the
// log. A changed meaning is a new version with an upcaster; every version ever
// released has a golden file in testdata.
package event

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Event is one fact: a pointer-free struct of the domain.
type Event any

// Encoded is an event as it is stored.
type Encoded struct {
	Type    string
	Version int
	// Data is one JSON object.
	Data []byte
}

// UnknownTypeError is a stored type or version that this release cannot read.
// Projections of money stop at it, visibly; others pass over it (C15, E8).
type UnknownTypeError struct {
	Type    string
	Version int
}

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("event type %q version %d is not known to this release", e.Type, e.Version)
}

// upcaster turns the data of one version into the data of the next: pure, no
// clock, no lookup.
type upcaster func([]byte) ([]byte, error)

// definition is one row of the registry.
type definition struct {
	name string
	// upcasters[i] lifts version i+1 to i+2; the current version is one more than
	// their number.
	upcasters []upcaster
	goType    reflect.Type
	decode    func([]byte) (Event, error)
}

func (d definition) version() int { return len(d.upcasters) + 1 }

// define makes a row for the struct T under a literal name.
func define[T any](name string, upcasters ...upcaster) definition {
	return definition{
		name:      name,
		upcasters: upcasters,
		goType:    reflect.TypeFor[T](),
		decode: func(data []byte) (Event, error) {
			var e T
			err := json.Unmarshal(data, &e)
			return e, err
		},
	}
}

var (
	byName = map[string]definition{}
	byType = map[reflect.Type]definition{}
)

func init() {
	for _, d := range slices.Concat(requestEvents, catalogEvents, workerEvents, circuitEvents, idempotencyEvents, billEvents, reconciliationEvents) {
		if _, twice := byName[d.name]; twice {
			panic("event: name registered twice: " + d.name)
		}
		byName[d.name], byType[d.goType] = d, d
	}
}

// Encode turns an event into what is stored. An event outside the registry is a
// programming error and panics: nothing may enter the log without a name.
func Encode(e Event) Encoded {
	d, ok := byType[reflect.TypeOf(e)]
	if !ok {
		panic(fmt.Sprintf("event: %T is not registered", e))
	}
	data, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("event: %s cannot be encoded: %v", d.name, err))
	}
	return Encoded{Type: d.name, Version: d.version(), Data: data}
}

// Decode reads a stored event and lifts it to the newest version. The error is an
// *UnknownTypeError when this release has no such type or version.
func Decode(typ string, version int, data []byte) (Event, error) {
	d, ok := byName[typ]
	if !ok || version < 1 || version > d.version() {
		return nil, &UnknownTypeError{Type: typ, Version: version}
	}
	for _, lift := range d.upcasters[version-1:] {
		var err error
		if data, err = lift(data); err != nil {
			return nil, fmt.Errorf("event %s version %d: %w", typ, version, err)
		}
	}
	e, err := d.decode(data)
	if err != nil {
		return nil, fmt.Errorf("event %s version %d: %w", typ, version, err)
	}
	return e, nil
}

// Name is the literal name under which an event is stored.
func Name(e Event) string {
	d, ok := byType[reflect.TypeOf(e)]
	if !ok {
		panic(fmt.Sprintf("event: %T is not registered", e))
	}
	return d.name
}

// Types lists every registered name with its current version.
func Types() map[string]int {
	types := make(map[string]int, len(byName))
	for name, d := range byName {
		types[name] = d.version()
	}
	return types
}

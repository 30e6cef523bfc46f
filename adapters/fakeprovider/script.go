package fakeprovider

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// Script says what calls get, in place of their model's name. The first rule
// that matches a call decides.
type Script struct {
	Rules []Rule `json:"rules"`
}

// Rule gives the calls of one model, one key, or both a sequence of outcomes.
// A member left empty matches everything. Successive calls that match get
// successive outcomes; the last one stays, or the sequence starts again.
type Rule struct {
	Model    string   `json:"model,omitempty"`
	Key      string   `json:"key,omitempty"` // the whole key as the caller sends it
	Outcomes []string `json:"outcomes"`
	Repeat   bool     `json:"repeat,omitempty"`
}

// Limits of what callers can make the server remember.
const (
	maxRules  = 1024
	maxModels = 4096 // model names with a sequence of their own
)

// sequence hands out plans to successive calls.
type sequence struct {
	plans  []*plan
	repeat bool
	calls  atomic.Int64
}

func (s *sequence) next() *plan {
	if len(s.plans) == 1 {
		return s.plans[0]
	}
	n := s.calls.Add(1) - 1
	if s.repeat {
		return s.plans[n%int64(len(s.plans))]
	}
	return s.plans[min(n, int64(len(s.plans)-1))]
}

// compiledRule is a rule with its plans and its own count of calls.
type compiledRule struct {
	model, key string
	sequence   sequence
}

// director chooses the plan of a call.
type director struct {
	mu       sync.RWMutex
	rules    []*compiledRule
	models   map[string]*sequence
	standard *sequence // what a model without a fault's name gets
}

func newDirector(standard string) (*director, error) {
	d := &director{models: map[string]*sequence{}}
	if standard == "" {
		standard = "ok"
	}
	plans, err := parseSequence(standard)
	if err != nil {
		return nil, err
	}
	d.standard = &sequence{plans: plans}
	return d, nil
}

// setScript replaces the rules. Nothing changes when one of them is wrong.
func (d *director) setScript(script Script) error {
	if len(script.Rules) > maxRules {
		return fmt.Errorf("more than %d rules", maxRules)
	}
	compiled := make([]*compiledRule, 0, len(script.Rules))
	for i, rule := range script.Rules {
		plans, err := parseSequence(strings.Join(rule.Outcomes, ","))
		if err != nil {
			return fmt.Errorf("rule %d: %w", i, err)
		}
		c := &compiledRule{model: rule.Model, key: rule.Key}
		c.sequence.plans, c.sequence.repeat = plans, rule.Repeat
		compiled = append(compiled, c)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rules = compiled
	return nil
}

// reset starts every sequence again.
func (d *director) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.models)
	d.standard.calls.Store(0)
	for _, rule := range d.rules {
		rule.sequence.calls.Store(0)
	}
}

// plan chooses what a call gets. The error tells a wrong model name.
func (d *director) plan(model, key string) (*plan, error) {
	d.mu.RLock()
	for _, rule := range d.rules {
		if (rule.model == "" || rule.model == model) && (rule.key == "" || rule.key == key) {
			d.mu.RUnlock()
			return rule.sequence.next(), nil
		}
	}
	known := d.models[model]
	d.mu.RUnlock()
	if known != nil {
		return known.next(), nil
	}
	text, ok := strings.CutPrefix(model, modelPrefix)
	if !ok {
		return d.standard.next(), nil
	}
	return d.learn(model, text)
}

// learn compiles a model name met for the first time.
func (d *director) learn(model, text string) (*plan, error) {
	plans, err := parseSequence(text)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.models[model] == nil {
		if len(d.models) >= maxModels {
			return nil, fmt.Errorf("more than %d model names since the last reset", maxModels)
		}
		d.models[model] = &sequence{plans: plans}
	}
	return d.models[model].next(), nil
}

// ParseScript reads a script from JSON; members it does not know are errors.
func ParseScript(raw []byte) (Script, error) {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.DisallowUnknownFields()
	var script Script
	if err := decoder.Decode(&script); err != nil {
		return Script{}, fmt.Errorf("script: %w", err)
	}
	return script, nil
}

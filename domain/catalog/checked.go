package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-gateway/sluice/domain/equivalence"
)

// Checked is what the state keeps of a check: enough to tell what a certification
// that cites it rests on.
type Checked struct {
	Model  string
	Result equivalence.Result
	Pool   []equivalence.Member
}

// Checked is the check whose evidence has this hash, if one was stored here. It stays
// known when its model is gone: the log has it.
func (s *State) Checked(hash string) (Checked, bool) {
	c, ok := s.checks[hash]
	return c, ok
}

// Pool are the deployments of a model's chain in their order: what an operator's
// certification is about (N15).
func (m Model) Pool() []string {
	var pool []string
	for _, rung := range m.Chain {
		if rung.Deployment != "" {
			pool = append(pool, rung.Deployment)
		}
	}
	return pool
}

// Doubts are the reasons why the evidence that a model's certification cites does not
// show that its pool answers alike; none when it does. members are the deployments as they
// shall be. Evidence that is no hash is an operator's own and nobody's to doubt. Doubts are
// no problems: the word of N15 is the operator's, and a file may have been certified on
// another installation.
func (s *State) Doubts(members map[string]equivalence.Member, m Model) []string {
	if m.Equivalence == nil || !strings.HasPrefix(m.Equivalence.Evidence, equivalence.HashPrefix) {
		return nil
	}
	check, ok := s.Checked(m.Equivalence.Evidence)
	if !ok {
		return []string{"no check of this installation stored this evidence"}
	}
	var doubts []string
	if check.Result != equivalence.Passed {
		doubts = append(doubts, fmt.Sprintf("the check that it cites ended as %s", check.Result))
	}
	for _, id := range m.Pool() {
		i := slices.IndexFunc(check.Pool, func(member equivalence.Member) bool { return member.Deployment == id })
		if i < 0 {
			doubts = append(doubts, fmt.Sprintf("the check that it cites did not ask deployment %s", id))
		} else if !sameTarget(check.Pool[i], members[id]) {
			doubts = append(doubts, fmt.Sprintf("deployment %s has another provider, protocol or upstream model than when it was checked", id))
		}
	}
	return doubts
}

// Members are all deployments as evidence names them, by id.
func Members(o Objects) map[string]equivalence.Member {
	protocols := make(map[string]Protocol, len(o.Providers))
	for _, p := range o.Providers {
		protocols[p.ID] = p.Protocol
	}
	members := make(map[string]equivalence.Member, len(o.Deployments))
	for _, d := range o.Deployments {
		members[d.ID] = equivalence.Member{
			Deployment: d.ID, Provider: d.Provider, Protocol: string(protocols[d.Provider]), UpstreamModel: d.UpstreamModel,
		}
	}
	return members
}

func sameTarget(a, b equivalence.Member) bool {
	a.Result, b.Result = "", ""
	return a == b
}

package catalog

import "slices"

// VisibleRungs are the rungs of a chain that an editor sees who may not know where
// hidden ones go.
func VisibleRungs(chain []Rung, hidden func(Rung) bool) []Rung {
	return slices.DeleteFunc(slices.Clone(chain), hidden)
}

// KeepHidden is a stored chain after an edit by somebody who saw only its visible
// rungs (C7). A hidden rung stays in its group, before or after the reference to
// another model, and behind the visible rung that it stood behind: moving what can
// be seen never carries what cannot past the reference.
func KeepHidden(stored, visible []Rung, hidden func(Rung) bool) []Rung {
	before, reference, after := groups(visible)
	var storedBefore, storedAfter []Rung
	storedBefore, _, storedAfter = groups(stored)
	if len(reference) == 0 {
		// The edit took the reference away: the groups have become one.
		return keepHidden(append(storedBefore, storedAfter...), before, hidden)
	}
	return slices.Concat(keepHidden(storedBefore, before, hidden), reference, keepHidden(storedAfter, after, hidden))
}

// groups cuts a chain at its one reference to a model.
func groups(chain []Rung) (before, reference, after []Rung) {
	i := slices.IndexFunc(chain, func(r Rung) bool { return r.Model != "" })
	if i < 0 {
		return slices.Clone(chain), nil, nil
	}
	return slices.Clone(chain[:i]), chain[i : i+1], slices.Clone(chain[i+1:])
}

// keepHidden puts the hidden rungs of one group back into it.
func keepHidden(stored, visible []Rung, hidden func(Rung) bool) []Rung {
	kept := slices.Clone(visible)
	for i, r := range stored {
		if !hidden(r) {
			continue
		}
		at := 0
		for _, before := range slices.Backward(stored[:i]) {
			if j := slices.Index(kept, before); j >= 0 {
				at = j + 1
				break
			}
		}
		kept = slices.Insert(kept, at, r)
	}
	return kept
}

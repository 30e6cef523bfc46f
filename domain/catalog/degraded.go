package catalog

// Degraded are the aliases that nothing fits any more after a change from before to
// after (N2). One that never fitted is no news, nor is one that was removed.
func Degraded(before, after Objects) []AliasDegraded {
	old, changed := newSnapshot(before.Canonical()), newSnapshot(after.Canonical())
	var list []AliasDegraded
	for _, t := range changed.objects.Tenants {
		names := old.names[t.ID]
		if names == nil {
			continue
		}
		for _, name := range changed.Unresolvable(t.ID) {
			if names.aliases[name] != nil {
				list = append(list, AliasDegraded{Tenant: t.ID, Name: name})
			}
		}
	}
	return list
}

// repeats is the first position of a chain that resolves to the same model as the
// one before it (N8), or -1.
func (s *Snapshot) repeats(chain []string, names *tenantNames) int {
	before := (*Model)(nil)
	for i, name := range chain {
		model := s.models[name]
		if model == nil {
			model = names.aliases[name]
		}
		if model != nil && model == before {
			return i
		}
		before = model
	}
	return -1
}

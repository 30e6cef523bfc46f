package catalog

import "slices"

// CacheAnswers are two of the four questions about a cache: whether the provider
// supports one, and whether the catalog prices it (K7). Whether an attempt reported any
// cached input stands in its usage, where none reported is another thing than zero.
// Whether a cache is warm now is known to the provider alone, and never claimed.
type CacheAnswers struct {
	// Supported is nil where nobody declared it.
	Supported *bool `json:"supported"`
	// Priced is set where cached input has a rate of its own.
	Priced bool `json:"priced"`
}

// CacheAnswers answers for a model: for the routes of its chain that it could be
// served by, any of which will do. False for a name that is no model.
func (s *Snapshot) CacheAnswers(slug string) (answers CacheAnswers, ok bool) {
	m := s.models[slug]
	if m == nil {
		return CacheAnswers{}, false
	}
	for _, r := range m.Chain {
		d := s.deployments[r.Deployment]
		if d == nil {
			continue
		}
		if d.Capabilities != nil {
			supports := slices.Contains(d.Capabilities, PromptCaching)
			if answers.Supported == nil || supports {
				answers.Supported = &supports
			}
		}
		answers.Priced = answers.Priced || d.Prices.CacheRead != nil
	}
	return answers, true
}

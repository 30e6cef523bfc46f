package fakeprovider

// wordingOf is how a dialect says a failure in one form: its own wording, else that of
// the provider whose form it is, since relays hand errors on as they got them.
func wordingOf(own failureTable, kind, form string) wording {
	if w, ok := own[kind][form]; ok {
		return w
	}
	for _, table := range failureTables {
		if w, ok := table[kind][form]; ok {
			return w
		}
	}
	return own[kind][""]
}

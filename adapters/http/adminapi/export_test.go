package adminapi

// Routes is the route table, for tests that walk it.
func (a *API) Routes() [][2]string {
	var list [][2]string
	for _, r := range a.routes() {
		list = append(list, [2]string{r.method, r.pattern})
	}
	return list
}

package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/tidwall/sjson"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

func (a *API) bind(r resource, handle func(context.Context, *call, target) *edge.Reply) handler {
	return func(ctx context.Context, c *call) *edge.Reply {
		return handle(ctx, c, target{resource: r, id: r.id(c.Params), visible: c.Query.Get("view") == "caller"})
	}
}

// target is what one request is about.
type target struct {
	resource
	id catalog.ObjectID
	// list is set when the request was sent to the list that the object stands in:
	// the revision is then the list's (RFC 9110: If-Match is about what was addressed).
	list *listing
	// visible is set by ?view=caller: the editor neither sees nor touches the rungs of
	// masked deployments (C7, X1).
	visible bool
}

func (t target) revision(s *catalog.State) int64 {
	switch {
	case t.list != nil:
		return s.RevisionOfAll(t.id.Kind, t.id.Tenant)
	case t.part != "":
		return s.Revision(t.id.Stream())
	}
	return s.RevisionOf(t.id)
}

func (a *API) get(ctx context.Context, _ *call, t target) *edge.Reply {
	return a.show(ctx, t, http.StatusOK)
}

// put creates or replaces (C3).
func (a *API) put(ctx context.Context, c *call, t target) *edge.Reply {
	sent, expected, err := t.read(c)
	if err != nil {
		return a.refuse(err)
	}
	return a.write(ctx, c, t, expected, func(current any, exists bool) (config.Document, error) {
		if t.part != "" && !exists {
			return sent, &catalog.MissingError{ID: t.id}
		}
		return t.put(current, exists, sent), nil
	})
}

// patch changes what is named: an omitted field is unchanged, null clears (C9).
func (a *API) patch(ctx context.Context, c *call, t target) *edge.Reply {
	sent, expected, err := t.read(c)
	if err != nil {
		return a.refuse(err)
	}
	return a.write(ctx, c, t, expected, func(current any, exists bool) (config.Document, error) {
		if !exists {
			return sent, &catalog.MissingError{ID: t.id}
		}
		return config.DocumentOf(current).Merge(t.wrap(sent)), nil
	})
}

// write decides an edit on the newest configuration and writes it as one batch
// (C2). next makes the whole object that is wanted of the current one.
func (a *API) write(ctx context.Context, c *call, t target, expected *int64, next func(current any, exists bool) (config.Document, error)) *edge.Reply {
	status := http.StatusOK
	plan, err := config.Change(ctx, a.Log, a.Catalog, c.by, a.Now(), func(state *catalog.State) (catalog.Objects, error) {
		objects := state.Objects()
		current, exists := objects.Find(t.id)
		if err := t.match(state, exists, expected); err != nil {
			return objects, err
		}
		if status = http.StatusOK; !exists {
			status = http.StatusCreated
		}
		doc, err := next(current, exists)
		if missing, ok := errors.AsType[*catalog.MissingError](err); ok && missing.ID == t.id {
			return objects, notFound(t.id.String(), t.revision(state))
		}
		if err != nil {
			return objects, err
		}
		value, err := decode(t.id, doc)
		if err != nil {
			return objects, t.within(err)
		}
		if catalog.Identify(value) != t.id {
			return objects, badField("", "the body names another object than the address, "+t.id.String())
		}
		return t.place(objects, value)
	})
	if err != nil {
		return a.refuse(t.within(err))
	}
	if plan.Empty() {
		status = http.StatusOK
	}
	return a.show(ctx, t, status)
}

// remove is DELETE. The revision keeps counting. A part goes back to its default.
func (a *API) remove(ctx context.Context, c *call, t target) *edge.Reply {
	expected, err := ifMatch(c)
	if err != nil {
		return a.refuse(err)
	}
	if t.part != "" {
		return a.write(ctx, c, t, expected, func(current any, exists bool) (config.Document, error) {
			if !exists {
				return config.Document{}, &catalog.MissingError{ID: t.id}
			}
			doc := config.DocumentOf(current)
			doc.Remove(t.part)
			return doc, nil
		})
	}
	_, err = config.Change(ctx, a.Log, a.Catalog, c.by, a.Now(), func(state *catalog.State) (catalog.Objects, error) {
		objects := state.Objects()
		_, exists := objects.Find(t.id)
		if err := t.match(state, exists, expected); err != nil {
			return objects, err
		}
		if !exists {
			return objects, notFound(t.id.String(), t.revision(state))
		}
		return objects.Without(t.id)
	})
	if err != nil {
		return a.refuse(err)
	}
	var revision int64
	if err := a.Catalog.Read(ctx, func(s *catalog.State) error { revision = t.revision(s); return nil }); err != nil {
		return a.refuse(err)
	}
	reply := document(http.StatusOK, map[string]any{"object": t.id.String(), "deleted": true, "revision": revision})
	reply.Header.Set("ETag", etag(revision))
	return reply
}

// match compares the revision that the editor loaded with the object's own (C3). An
// object that exists is never written without one; creating needs none.
func (t target) match(s *catalog.State, exists bool, expected *int64) error {
	have := t.revision(s)
	if expected == nil && exists || expected != nil && *expected != have {
		return &config.RevisionError{ID: t.id, Have: have, Missing: expected == nil}
	}
	return nil
}

// within says the fields of a problem as the editor of a part sees them.
func (t target) within(err error) error {
	strip := func(field string) string {
		return strings.TrimPrefix(strings.TrimPrefix(field, t.part), ".")
	}
	if t.part == "" {
		return err
	}
	if e, ok := errors.AsType[*config.DocumentError](err); ok {
		for i, p := range e.Problems {
			e.Problems[i].Path = strip(p.Path)
		}
	}
	if e, ok := errors.AsType[*config.InvalidError](err); ok {
		for i, p := range e.Problems {
			if p.Object == t.id.String() {
				e.Problems[i].Field = strip(p.Field)
			}
		}
	}
	return err
}

// show is the object as it is now, with its revision (the ETag of every read).
func (a *API) show(ctx context.Context, t target, status int) *edge.Reply {
	var body []byte
	var revision int64
	err := a.Catalog.Read(ctx, func(state *catalog.State) error {
		objects := state.Objects()
		revision = t.revision(state)
		value, ok := objects.Find(t.id)
		if !ok {
			value, ok = noOverride(objects, t.id)
		}
		if !ok {
			return notFound(t.id.String(), revision)
		}
		var err error
		body, err = a.render(objects, t, value, revision)
		return err
	})
	if err != nil {
		return a.refuse(err)
	}
	return &edge.Reply{
		Status: status, Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Etag": {etag(revision)}},
	}
}

func (a *API) render(objects catalog.Objects, t target, value any, revision int64) ([]byte, error) {
	switch v := value.(type) {
	case catalog.ModelChain:
		value = a.judged(objects, t, v.Chain)
	case catalog.ChainOverride:
		value = a.judged(objects, t, v.Chain)
	case catalog.Deployment:
		if t.part == "prices" {
			value = v.Prices
		}
	case catalog.Model:
		if t.part == "policy" {
			value = shownPolicy{v.Policy, v.Policy.WithDefaults()}
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if p, ok := value.(catalog.Provider); ok && a.Refuses != nil && a.Refuses(p.BaseURL) {
		// Accepted: the workers that serve it may be others, or be restarted later.
		if text, err = sjson.SetBytes(text, "warnings", []string{config.RefusedBaseURL(p)}); err != nil {
			return nil, err
		}
	}
	return sjson.SetBytes(text, "revision", revision)
}

// shownPolicy is a policy as it was written, and as it holds with the defaults
// filled in (C10).
type shownPolicy struct {
	catalog.Policy
	Effective catalog.Policy `json:"effective"`
}

package requests

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-gateway/sluice/domain/money"
	"github.com/sluice-gateway/sluice/domain/request"
)

const (
	// DefaultLimit is a page's size when the caller names none.
	DefaultLimit = 50
	// MaxLimit bounds a page: more is another page.
	MaxLimit = 500
)

// ErrNotFound is a request that is not there, or not this organization's.
var ErrNotFound = errors.New("requests: not found")

// Filter narrows a search. An empty field does not narrow.
type Filter struct {
	// Tenant is the organization that asks; empty is the operator, who sees all.
	Tenant string
	// Since is inclusive, Until is not.
	Since, Until time.Time
	// Model is the one that was asked for or the one that it stood for.
	Model    string
	Provider string
	Outcome  request.Outcome
	Key      string
	Class    string
	// MinCost is a lower bound of the charge; zero does not narrow.
	MinCost money.NanoUSD
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Page is one page of a search, newest first.
type Page struct {
	Rows []Row
	// Next is the cursor of the page that follows, empty on the last.
	Next string
}

// List searches. cursor is empty or a former page's Next; limit is bounded to
// MaxLimit, and zero means DefaultLimit. The order is newest first, total, and a
// cursor names the last row seen, so requests that arrive between two pages move
// nothing (X2).
func List(ctx context.Context, db Querier, f Filter, cursor string, limit int) (Page, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = min(limit, MaxLimit)
	from, err := decodeCursor(cursor)
	if err != nil {
		return Page{}, err
	}
	// One more row than asked for says whether there is another page.
	sql, args := searchSQL(f, from, limit+1)
	found, err := db.Query(ctx, sql, args...)
	if err != nil {
		return Page{}, fmt.Errorf("list requests: %w", err)
	}
	rows, err := pgx.CollectRows(found, scanRow)
	if err != nil {
		return Page{}, fmt.Errorf("list requests: %w", err)
	}
	page := Page{Rows: rows}
	if len(rows) > limit {
		page.Rows = rows[:limit]
		page.Next = encodeCursor(rows[limit-1])
	}
	return page, nil
}

// Get reads one request of an organization, or of any for an empty tenant.
func Get(ctx context.Context, db Querier, tenant string, id uuid.UUID) (Row, error) {
	found, err := db.Query(ctx,
		"select "+columnList+" from requests where id = $1 and ($2 = '' or tenant = $2)", id, tenant)
	if err != nil {
		return Row{}, fmt.Errorf("get request: %w", err)
	}
	row, err := pgx.CollectExactlyOneRow(found, scanRow)
	if errors.Is(err, pgx.ErrNoRows) {
		return Row{}, ErrNotFound
	}
	return row, err
}

// conditions are a WHERE clause being built, with its parameters.
type conditions struct {
	terms []string
	args  []any
}

// add appends a term; every ? in it is the one parameter.
func (c *conditions) add(term string, arg any) {
	c.args = append(c.args, arg)
	c.terms = append(c.terms, strings.ReplaceAll(term, "?", fmt.Sprintf("$%d", len(c.args))))
}

// idSlack is how far a request's id, made on arrival, and its admission may lie
// apart: an admission waits seconds at most, clocks of workers differ by less.
const idSlack = time.Hour

// searchSQL builds the statement from what is asked for only: a term such as
// `($3 is null or key = $3)` would hide the index that answers it from the planner.
//
// The operator's search, over all organizations, goes by id, which is a UUIDv7 and
// so in order of time too. An index on (at, id) for it would be one more write a
// request, and the planner would take it for a tenant's search as well and read
// past everybody else's requests.
func searchSQL(f Filter, from *cursorKey, limit int) (string, []any) {
	var c conditions
	order := "id desc"
	if f.Tenant != "" {
		c.add("tenant = ?", f.Tenant)
		order = "at desc, id desc"
	}
	c.between(f)
	if from != nil {
		c.after(*from, f.Tenant == "")
	}
	c.facts(f)
	where := ""
	if len(c.terms) > 0 {
		where = " where " + strings.Join(c.terms, " and ")
	}
	c.args = append(c.args, limit)
	return fmt.Sprintf("select %s from requests%s order by %s limit $%d", columnList, where, order, len(c.args)), c.args
}

// between adds the bounds of time.
func (c *conditions) between(f Filter) {
	if !f.Since.IsZero() {
		c.add("at >= ?", f.Since)
		if f.Tenant == "" {
			c.add("id >= ?", idAt(f.Since.Add(-idSlack)))
		}
	}
	if !f.Until.IsZero() {
		c.add("at < ?", f.Until)
		if f.Tenant == "" {
			c.add("id < ?", idAt(f.Until.Add(idSlack)))
		}
	}
}

// idAt is the lowest UUIDv7 of a millisecond, as far as order goes.
func idAt(at time.Time) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(max(0, at.UnixMilli()))<<16)
	return id
}

// after adds where the page before ended.
func (c *conditions) after(from cursorKey, byID bool) {
	if byID {
		c.add("id < ?", from.id)
		return
	}
	c.args = append(c.args, from.at, from.id)
	c.terms = append(c.terms, fmt.Sprintf("(at, id) < ($%d, $%d)", len(c.args)-1, len(c.args)))
}

// facts adds what the request must have been.
func (c *conditions) facts(f Filter) {
	if f.Key != "" {
		c.add("key = ?", f.Key)
	}
	if f.Model != "" {
		c.add("(canonical_model = ? or requested_model = ?)", f.Model)
	}
	if f.Provider != "" {
		c.add("provider = ?", f.Provider)
		if f.Tenant != "" {
			// Otherwise the search would tell what the answer hides (X1).
			c.terms = append(c.terms, "not masked")
		}
	}
	if f.Class != "" {
		c.add("class = ?", f.Class)
	}
	if f.MinCost > 0 {
		c.add("charge_nanousd >= ?", int64(f.MinCost))
	}
	if f.Outcome != "" {
		c.add("outcome = ?", string(f.Outcome))
		if f.Outcome != request.Completed {
			c.terms = append(c.terms, "outcome <> 'completed' and outcome <> ''") // lets the partial index answer
		}
	}
}

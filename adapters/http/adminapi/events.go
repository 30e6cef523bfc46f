package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/tidwall/sjson"

	"github.com/sluice-gateway/sluice/adapters/http/edge"
	"github.com/sluice-gateway/sluice/eventstore"
)

// maxScanned bounds how much of the log one call looks through for a type: what it
// did not get to is behind next_cursor.
const maxScanned = 20_000

// scanPage is how much is read at a time.
const scanPage = 1000

// rawEvent is an event as the log holds it.
type rawEvent struct {
	Shard         int16           `json:"shard"`
	Position      int64           `json:"position"`
	Stream        string          `json:"stream"`
	StreamVersion int64           `json:"stream_version"`
	Type          string          `json:"type"`
	Version       int             `json:"version"`
	At            time.Time       `json:"at,omitzero"`
	RecordedAt    time.Time       `json:"recorded_at"`
	Meta          eventstore.Meta `json:"meta"`
	Data          json.RawMessage `json:"data"`
}

// listEvents is the raw log in its order: what follows a position, of one stream or
// one type if asked. next_cursor is the next `after`, null at the end of the log.
func (a *API) listEvents(ctx context.Context, c *call) *edge.Reply {
	after, refused := number(c, "after", 0)
	if cursor := c.Query.Get("cursor"); cursor != "" {
		after, refused = number(c, "cursor", 0)
	}
	limit, badLimit := number(c, "limit", defaultLimit)
	shard, badShard := number(c, "shard", 0)
	for _, bad := range []*failure{refused, badLimit, badShard} {
		if bad != nil {
			return bad.reply()
		}
	}
	s := scan{
		limit: min(max(limit, 1), maxLimit), typ: c.Query.Get("type"), stream: c.Query.Get("stream"),
		shard: int16(min(shard, 1<<14)), at: int64(after),
	}
	read := a.scanAll
	if s.stream != "" {
		read = a.scanStream
	}
	err := read(ctx, &s)
	switch {
	case errors.Is(err, eventstore.ErrInvalid):
		return badField("stream", "is no stream's name").reply()
	case err != nil:
		return a.refuse(err)
	}
	p := page[rawEvent]{Data: s.found}
	if !s.ended {
		next := strconv.FormatInt(s.at, 10)
		p.NextCursor = &next
	}
	return document(http.StatusOK, p)
}

// scan is one look through the log.
type scan struct {
	limit       int
	typ, stream string
	shard       int16
	found       []rawEvent
	// at is the last position that was looked at.
	at int64
	// ended: there was nothing behind it.
	ended bool
}

// take looks at a page's events until the limit is reached; false when it is.
func (s *scan) take(events []eventstore.Recorded) bool {
	for _, rec := range events {
		if rec.Position <= s.at {
			continue
		}
		if len(s.found) == s.limit {
			return false
		}
		s.at = rec.Position
		if s.typ != "" && rec.Type != s.typ {
			continue
		}
		s.found = append(s.found, rawOf(rec))
	}
	return true
}

func (a *API) scanAll(ctx context.Context, s *scan) error {
	s.found = []rawEvent{}
	for scanned := 0; scanned < maxScanned; scanned += scanPage {
		events, err := a.Log.ReadAll(ctx, s.shard, s.at, scanPage)
		if err != nil {
			return err
		}
		if !s.take(events) {
			return nil
		}
		if len(events) < scanPage {
			s.ended = true
			return nil
		}
	}
	return nil
}

func (a *API) scanStream(ctx context.Context, s *scan) error {
	s.found = []rawEvent{}
	for version := int64(1); ; {
		events, err := a.Log.ReadStream(ctx, s.stream, version, scanPage)
		if err != nil {
			return err
		}
		if !s.take(events) {
			return nil
		}
		if len(events) < scanPage {
			s.ended = true
			return nil
		}
		version += int64(len(events))
	}
}

// rawOf is an event as it is stored, but for a key's hash: it could be tried against
// guesses.
func rawOf(rec eventstore.Recorded) rawEvent {
	data := json.RawMessage(rec.Data)
	if rec.Type == "key_created" {
		if without, err := sjson.DeleteBytes(rec.Data, "key.hash"); err == nil {
			data = without
		}
	}
	return rawEvent{
		Shard: rec.Shard, Position: rec.Position, Stream: rec.Stream, StreamVersion: rec.StreamVersion,
		Type: rec.Type, Version: rec.Version, At: rec.At, RecordedAt: rec.RecordedAt, Meta: rec.Meta, Data: data,
	}
}

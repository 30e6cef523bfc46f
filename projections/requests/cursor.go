package requests

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"
)

// ErrCursor is a cursor that no page gave out.
var ErrCursor = errors.New("requests: not a cursor")

// cursorKey is the last row of a page.
type cursorKey struct {
	at time.Time
	id uuid.UUID
}

// cursorBytes are a format byte, microseconds since 1970 and the id.
const (
	cursorFormat = 1
	cursorBytes  = 1 + 8 + 16
)

// encodeCursor makes the opaque text for a row. It is opaque so that its content
// may change; nobody gains anything by making one up.
func encodeCursor(row Row) string {
	b := make([]byte, 0, cursorBytes)
	b = append(b, cursorFormat)
	b = binary.BigEndian.AppendUint64(b, uint64(row.At.UnixMicro()))
	b = append(b, row.ID[:]...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeCursor is its inverse; an empty cursor is the first page.
func decodeCursor(text string) (*cursorKey, error) {
	if text == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != cursorBytes || b[0] != cursorFormat {
		return nil, ErrCursor
	}
	at := time.UnixMicro(int64(binary.BigEndian.Uint64(b[1:9]))).UTC()
	if at.Year() < 1970 || at.Year() > 9999 {
		return nil, ErrCursor // beyond what a timestamp of the database holds
	}
	return &cursorKey{at: at, id: uuid.UUID(b[9:])}, nil
}

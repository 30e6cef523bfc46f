package bills

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"
)

// ErrCursor is a cursor that no page gave out.
var ErrCursor = errors.New("bills: not a cursor")

// place is where a page of attempts ended; the zero place is before all.
type place struct {
	at      time.Time
	request uuid.UUID
	attempt int32
}

// cursorBytes are a format byte, microseconds since 1970, the request and the
// attempt.
const (
	cursorFormat = 1
	cursorBytes  = 1 + 8 + 16 + 4
)

func encodeCursor(a Attempt) string {
	b := make([]byte, 0, cursorBytes)
	b = append(b, cursorFormat)
	b = binary.BigEndian.AppendUint64(b, uint64(a.At.UnixMicro()))
	b = append(b, a.RequestID[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(a.Attempt))
	return base64.RawURLEncoding.EncodeToString(b)
}

func decodeCursor(text string) (place, error) {
	if text == "" {
		return place{}, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != cursorBytes || b[0] != cursorFormat {
		return place{}, ErrCursor
	}
	p := place{
		at:      time.UnixMicro(int64(binary.BigEndian.Uint64(b[1:9]))).UTC(),
		request: uuid.UUID(b[9:25]),
		attempt: int32(binary.BigEndian.Uint32(b[25:])),
	}
	if p.at.Year() < 1970 || p.at.Year() > 9999 || p.attempt < 0 {
		return place{}, ErrCursor
	}
	return p, nil
}

package eventstore

import (
	"strings"
	"time"

	"github.com/google/uuid"
)

// maxStreamBytes bounds a stream's name. It is an index key; PostgreSQL's own
// limit is about 2,700 bytes.
const maxStreamBytes = 512

var (
	configBorn = time.Unix(0, 0).UTC()
	stateBorn  = configBorn.AddDate(0, 0, 1)
	// requestsBorn is where the fixed days end.
	requestsBorn = configBorn.AddDate(0, 0, 2)
)

// configKinds are the streams a starting worker reads in full: configuration.
// They share one small partition.
var configKinds = map[string]bool{
	"tenant": true, "key": true, "budget": true, "promotion": true, "tier": true,
	"provider": true, "deployment": true, "model": true, "chain": true, "class": true,
	"connection": true, "project": true, "policy": true, "equivalence": true,
	"credential": true, "price": true, "settings": true, "webhook": true,
}

// Born is a stream's partition key: the time inside a request's UUIDv7, or one of
// two fixed days for configuration and for everything else. It depends on nothing
// but the name, so all rows of a stream share one value and one partition for
// good. Moving a kind between configKinds and the rest would therefore hide its
// old rows: a kind never moves.
func Born(stream string) (time.Time, error) {
	kind, id, ok := strings.Cut(stream, "/")
	if !ok || kind == "" || id == "" || len(stream) > maxStreamBytes {
		return time.Time{}, invalid("stream %.40q is not kind/id", stream)
	}
	for i := range len(stream) {
		if stream[i] <= ' ' || stream[i] >= 0x7f {
			return time.Time{}, invalid("stream %.40q holds something else than printable ASCII", stream)
		}
	}
	switch {
	case kind == "request":
		return requestBorn(id)
	case configKinds[kind]:
		return configBorn, nil
	default:
		return stateBorn, nil
	}
}

func requestBorn(id string) (time.Time, error) {
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 || len(id) != 36 {
		return time.Time{}, invalid("request %.40q is not a UUIDv7", id)
	}
	ms := int64(u[0])<<40 | int64(u[1])<<32 | int64(u[2])<<24 | int64(u[3])<<16 | int64(u[4])<<8 | int64(u[5])
	born := time.UnixMilli(ms).UTC()
	// Times before 1970-01-03 are the fixed days' and times past year 9999 are
	// nobody's clock.
	if born.Before(requestsBorn) || born.Year() > 9999 {
		return time.Time{}, invalid("request %.40q is from %d", id, born.Year())
	}
	return born, nil
}

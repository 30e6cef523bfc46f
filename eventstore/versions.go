package eventstore

// versions remembers which version the lane wrote last to a stream. It forgets the
// oldest half when it is full: a stream that comes back after that is read once.
type versions struct {
	limit      int
	young, old map[string]int64
}

// maxSeenStreams bounds each generation: two of them at about 150 bytes a stream
// are 20 MB, and hold far more requests than a worker has in flight.
const maxSeenStreams = 1 << 16

func newVersions(limit int) *versions {
	return &versions{limit: limit, young: map[string]int64{}}
}

func (v *versions) remember(rows []row) {
	for _, r := range rows {
		if len(v.young) >= v.limit {
			v.old, v.young = v.young, make(map[string]int64, v.limit)
		}
		v.young[r.stream] = r.version
	}
}

// at is the version, -2 if it is not known.
func (v *versions) at(stream string) int64 {
	if version, ok := v.young[stream]; ok {
		return version
	}
	if version, ok := v.old[stream]; ok {
		return version
	}
	return -2
}

func (v *versions) forget() { v.young, v.old = map[string]int64{}, nil }

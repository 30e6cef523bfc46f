package eventstore

import "context"

// Wait returns how far a shard's log is known to be durable, as soon as that is
// beyond a position, or the context's error. It reads nothing: it is for waking
// others, who then read, and who also look by themselves from time to time, since
// word of another process's batch may be lost.
func (s *Store) Wait(ctx context.Context, shard int16, beyond int64) (position int64, err error) {
	if shard < 0 || int(shard) >= len(s.lanes) {
		return 0, invalid("shard %d of %d", shard, len(s.lanes))
	}
	for {
		position, wake := s.durable.known(shard)
		if position > beyond {
			return position, nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return position, ctx.Err()
		}
	}
}

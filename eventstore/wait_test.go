package eventstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestWaitWakesWhenTheLogMovesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{lanes: make([]*lane, 1), durable: newDurable(nil, 1)}
		waited := make(chan int64)
		go func() {
			position, err := s.Wait(t.Context(), 0, 5)
			if err != nil {
				t.Error(err)
			}
			waited <- position
		}()
		synctest.Wait()
		s.durable.advance(0, 5)
		s.durable.wakeAll() // says nothing new
		synctest.Wait()
		select {
		case position := <-waited:
			t.Fatalf("woke at %d", position)
		default:
		}
		s.durable.advance(0, 7)
		if position := <-waited; position != 7 {
			t.Errorf("woke at %d, want 7", position)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	s := &Store{lanes: make([]*lane, 1), durable: newDurable(nil, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Wait(ctx, 0, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.Wait(t.Context(), 1, 0); !errors.Is(err, ErrInvalid) {
		t.Errorf("a shard that is not there: %v", err)
	}
}

// Package bus carries the news that the log has grown, on Watermill.
//
// A nudge is never the truth: it says how far a shard has come, and whoever is
// nudged reads the log. So it may be lost, repeated or late, a bus that is down
// stops nothing (O4), and every reader also looks by itself.
package bus

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
)

// Topic is where commits are announced.
const Topic = "committed"

// Nudge says that a shard's log is durable up to a position.
type Nudge struct {
	Shard    int16
	Position int64
}

// Bus publishes nudges and hands them to subscribers. Close it.
type Bus struct {
	publisher  message.Publisher
	subscriber message.Subscriber
	running    sync.WaitGroup
}

// AddressError is a bus that this build cannot speak to.
type AddressError struct{ Address string }

func (e *AddressError) Error() string {
	scheme, _, _ := strings.Cut(e.Address, ":") // the rest may hold a password
	return fmt.Sprintf("bus %q is not supported; use \"memory\"", scheme)
}

// Open makes the bus that SLUICE_BUS names. "memory", also the empty address's
// meaning, stays within the process: with several, PostgreSQL's notifications carry
// the news from one to another and each has a bus of its own.
func Open(address string) (*Bus, error) {
	switch address {
	case "", "memory":
		// Publishing waits for the subscribers to take the message. Otherwise the
		// channel starts a goroutine a message and subscriber, and a slow one would
		// gather them without bound. The logger is silent because it tells of every
		// message that nobody waits for.
		channel := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, watermill.NopLogger{})
		return &Bus{publisher: channel, subscriber: channel}, nil
	default:
		return nil, &AddressError{Address: address}
	}
}

// Publish announces a nudge. The error is for a log line: nothing depends on it.
func (b *Bus) Publish(n Nudge) error {
	payload := strconv.AppendInt(nil, int64(n.Shard), 10)
	payload = append(payload, ':')
	payload = strconv.AppendInt(payload, n.Position, 10)
	if err := b.publisher.Publish(Topic, message.NewMessage(watermill.NewUUID(), payload)); err != nil {
		return fmt.Errorf("bus: publish: %w", err)
	}
	return nil
}

// Subscribe hands every nudge that is published from now on to handle, one after
// the other, until ctx ends or the bus is closed. handle must return at once: the
// publisher waits for it.
func (b *Bus) Subscribe(ctx context.Context, handle func(Nudge)) error {
	messages, err := b.subscriber.Subscribe(ctx, Topic)
	if err != nil {
		return fmt.Errorf("bus: subscribe: %w", err)
	}
	b.running.Go(func() {
		for msg := range messages {
			// What is no nudge is dropped, not sent again: reading it once more would
			// not make it one.
			if n, ok := parse(msg.Payload); ok {
				handle(n)
			}
			msg.Ack()
		}
	})
	return nil
}

// Close ends all subscriptions and returns when their handlers have.
func (b *Bus) Close() error {
	err := b.publisher.Close()
	b.running.Wait()
	if err != nil {
		return fmt.Errorf("bus: close: %w", err)
	}
	return nil
}

func parse(payload []byte) (Nudge, bool) {
	left, right, ok := strings.Cut(string(payload), ":")
	shard, err1 := strconv.ParseInt(left, 10, 16)
	position, err2 := strconv.ParseInt(right, 10, 64)
	if !ok || err1 != nil || err2 != nil || shard < 0 || position < 0 {
		return Nudge{}, false
	}
	return Nudge{Shard: int16(shard), Position: position}, true
}

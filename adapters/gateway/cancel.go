package gateway

import (
	"context"
	"time"

	"github.com/sluice-gateway/sluice/adapters/provider"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/walk"
)

// drainLimits bound what is read of an answer whose client has left, where the
// provider bills the whole of it anyway (S7).
var drainLimits = provider.DrainLimits{Time: 30 * time.Second, Bytes: 4 << 20}

// upstreamContext is the context of one call. It ends with the client, which ends
// the call upstream at once; where the provider's answers are drained it outlives
// the client by the bound of a drain.
func upstreamContext(client context.Context, call *walk.Call) (context.Context, context.CancelFunc) {
	if call.Rung.Provider.OnClientCancel != catalog.Drain {
		return context.WithTimeoutCause(client, call.Timeouts.Total, context.DeadlineExceeded)
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(client), call.Timeouts.Total, context.DeadlineExceeded)
	stop := context.AfterFunc(client, func() {
		timer := time.NewTimer(drainLimits.Time)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() { stop(); cancel() }
}

// drain reads an answer on for nobody, to learn what will be billed.
func (s *streaming) drain() {
	if s.call.Rung.Provider.OnClientCancel == catalog.Drain {
		s.reply.Drain(drainLimits)
	}
}

// Package admin is what operators and their machines look at, on a listener of
// its own (Z7): probes and metrics, without a key.
package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/sluice-gateway/sluice/adapters/http/edge"
)

// Problem is one reason not to send traffic here: a stale catalog, a store that is
// not reachable, a schema that is not ours.
type Problem struct {
	Check  string `json:"check"`
	Detail string `json:"detail"`
}

// Config is what the listener shows.
type Config struct {
	// Started reports whether start-up is over.
	Started func() bool
	// Ready lists what is wrong now; nothing means ready. It must not do slow I/O:
	// probes come every few seconds, from several places.
	Ready   func(ctx context.Context) []Problem
	Metrics prometheus.Gatherer
}

// Register puts the probes on a server. The three mean different things (O2): live
// is a process that answers, started has its first catalog, ready should get
// traffic.
func Register(s *edge.Server, c Config) {
	s.Handle(http.MethodGet, "/livez", func(context.Context, *edge.Request) *edge.Reply {
		return verdict(nil)
	})
	s.Handle(http.MethodGet, "/startupz", func(context.Context, *edge.Request) *edge.Reply {
		if !c.Started() {
			return verdict([]Problem{{Check: "startup", Detail: "not finished"}})
		}
		return verdict(nil)
	})
	s.Handle(http.MethodGet, "/readyz", func(ctx context.Context, _ *edge.Request) *edge.Reply {
		return verdict(c.Ready(ctx))
	})
	s.Handle(http.MethodGet, "/metrics", func(context.Context, *edge.Request) *edge.Reply {
		return metrics(c.Metrics)
	})
}

func verdict(problems []Problem) *edge.Reply {
	status, word := http.StatusOK, "ok"
	if len(problems) > 0 {
		status, word = http.StatusServiceUnavailable, "unavailable"
	}
	body, err := json.Marshal(struct {
		Status   string    `json:"status"`
		Problems []Problem `json:"problems,omitempty"`
	}{word, problems})
	if err != nil {
		return &edge.Reply{Status: http.StatusInternalServerError}
	}
	return &edge.Reply{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

// metrics writes the text format that Prometheus reads. The client library's own
// handler is for net/http; its encoder is not.
func metrics(g prometheus.Gatherer) *edge.Reply {
	families, err := g.Gather()
	if err != nil {
		return &edge.Reply{Status: http.StatusInternalServerError}
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	var body bytes.Buffer
	enc := expfmt.NewEncoder(&body, format)
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			return &edge.Reply{Status: http.StatusInternalServerError}
		}
	}
	return &edge.Reply{Status: http.StatusOK, Header: http.Header{"Content-Type": {string(format)}}, Body: body.Bytes()}
}

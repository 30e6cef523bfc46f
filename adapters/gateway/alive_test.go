package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
)

// timed keeps when each event was sent, from the beginning.
type timed struct {
	begun time.Time
	sent  []string
}

func (w *timed) Write(event []byte) error {
	w.sent = append(w.sent, time.Since(w.begun).String()+" "+string(event))
	return nil
}

// TestSilenceAfterTheCommitIsBridged_S10: a comment every 15 s while the provider
// says nothing, counted from the last event, and none after the end.
//
// Rules: S10.
func TestSilenceAfterTheCommitIsBridged_S10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &timed{begun: time.Now()}
		enc := chat.Inbound{}.NewStream(&dialect.Request{}, dialect.Meta{})
		w := newAliveWriter(out, enc)
		<-time.After(10 * time.Second) // virtual
		if err := w.write([]byte("data: a\n\n")); err != nil {
			t.Fatal(err)
		}
		<-time.After(32 * time.Second)
		w.stop()
		<-time.After(time.Minute)
		comment := string(enc.KeepAlive(nil))
		want := []string{"10s data: a\n\n", "25s " + comment, "40s " + comment}
		if diff := cmp.Diff(want, out.sent); diff != "" {
			t.Error(diff)
		}
	})
}

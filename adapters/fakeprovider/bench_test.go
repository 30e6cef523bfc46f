package fakeprovider_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
)

// BenchmarkServe measures calls as a gateway's benchmark makes them: many
// keep-alive connections, small requests. The client writes and reads raw
// bytes, so that nearly all the time measured is the server's.
func BenchmarkServe(b *testing.B) {
	for _, model := range []string{"fake-ok", "fake-ok+delay:20ms"} {
		for _, stream := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/stream=%v", strings.TrimPrefix(model, "fake-"), stream), func(b *testing.B) {
				s := fakeprovider.Start(b, fakeprovider.Options{})
				body := chatBody(model, stream)
				request := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: fake\r\nAuthorization: Bearer sk-bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
				b.SetParallelism(64)
				before := cpuTime(b)
				b.RunParallel(func(pb *testing.PB) { callRaw(b, s, request, pb) })
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
				b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
			})
		}
	}
}

// cpuTime is what the process used so far, client included: unlike requests a
// second it says the same on a busy machine.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func callRaw(b *testing.B, s *fakeprovider.Server, request string, pb *testing.PB) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		b.Error(err)
		return
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for pb.Next() {
		if _, err := io.WriteString(conn, request); err != nil {
			b.Error(err)
			return
		}
		reply, err := http.ReadResponse(in, nil)
		if err != nil {
			b.Error(err)
			return
		}
		if _, err := io.Copy(io.Discard, reply.Body); err != nil {
			b.Error(err)
			return
		}
	}
}

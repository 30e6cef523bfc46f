package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// target is who gets the load: the provider or the gateway before it.
type target struct {
	name    string
	address string
	key     string
	// model names what the provider does with the request.
	model string
}

// request is a small chat completion as it goes over the wire.
func (t target) request(stream bool) []byte {
	body := `{"model":` + strconv.Quote(t.model) + `,"max_tokens":1000,"messages":[` +
		`{"role":"system","content":"You answer briefly."},{"role":"user","content":"What is the capital of France?"}]`
	if stream {
		body += `,"stream":true`
	}
	body += "}"
	return fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", t.address, t.key, len(body), body)
}

// client is one keep-alive connection. It writes prepared bytes and reads replies
// whole: the load generator shares a core with the provider and has to be cheap.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

// replyTimeout is longer than any reply that is measured takes.
const replyTimeout = 30 * time.Second

func dial(address string) (*client, error) {
	conn, err := net.DialTimeout("tcp", address, replyTimeout)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}, nil
}

var done = []byte("data: [DONE]")

// do makes one exchange. A stream is whole only with its terminator.
func (c *client) do(request []byte, stream bool) error {
	body, err := c.begin(request)
	if err != nil {
		return err
	}
	defer body.Close()
	if !stream {
		_, err = io.Copy(io.Discard, body)
		return err
	}
	var last [64]byte
	kept := last[:0]
	buf := make([]byte, 8<<10)
	for {
		n, err := body.Read(buf)
		tail := buf[max(0, n-len(done)-8):n]
		kept = append(kept, tail...)
		kept = kept[max(0, len(kept)-2*len(done)):]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if !bytes.Contains(kept, done) {
		return errors.New("a stream ended without its terminator")
	}
	return nil
}

// begin sends a request and reads the head of its reply.
func (c *client) begin(request []byte) (io.ReadCloser, error) {
	_ = c.conn.SetDeadline(time.Now().Add(replyTimeout))
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		return nil, fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return resp.Body, nil
}

// sample is what a phase measured.
type sample struct {
	requests int
	took     time.Duration
	latency  []time.Duration // sorted
	cost     cost
}

func (s *sample) rate() float64 { return float64(s.requests) / s.took.Seconds() }

func (s *sample) quantile(q float64) time.Duration {
	if len(s.latency) == 0 {
		return 0
	}
	return s.latency[int(q*float64(len(s.latency)-1))]
}

// closed keeps connections busy: each sends its next request when it has the reply
// to the last one. Only requests that began and ended inside the phase count.
func closed(ctx context.Context, t target, connections int, stream bool, phase time.Duration) (*sample, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request := t.request(stream)
	var mu sync.Mutex
	var failed error
	all := &sample{}
	begin := time.Now()
	var running sync.WaitGroup
	for range connections {
		running.Go(func() {
			latency, err := keepBusy(ctx, t.address, request, stream, begin.Add(phase))
			mu.Lock()
			defer mu.Unlock()
			all.latency = append(all.latency, latency...)
			if err != nil && failed == nil {
				failed = fmt.Errorf("%s, %s: %w", t.name, t.model, err)
				cancel()
			}
		})
	}
	running.Wait()
	all.took, all.requests = time.Since(begin), len(all.latency)
	slices.Sort(all.latency)
	return all, failed
}

func keepBusy(ctx context.Context, address string, request []byte, stream bool, until time.Time) ([]time.Duration, error) {
	c, err := dial(address)
	if err != nil {
		return nil, err
	}
	defer c.conn.Close()
	var latency []time.Duration
	for ctx.Err() == nil {
		sent := time.Now()
		if sent.After(until) {
			break
		}
		if err := c.do(request, stream); err != nil {
			return latency, err
		}
		latency = append(latency, time.Since(sent))
	}
	return latency, nil
}

// maxOpen bounds the requests of an open loop that wait for their reply: a target
// that falls behind shows in the latency, which goes on counting.
const maxOpen = 512

// open sends at a fixed rate whatever comes back. Latency counts from when a
// request was due, not from when it was sent: a stall delays all that were due
// during it, and each of them says so.
func open(ctx context.Context, t target, perSecond int, phase time.Duration) (*sample, error) {
	request := t.request(false)
	due := make(chan time.Time, maxOpen)
	var mu sync.Mutex
	var failed error
	var idle []*client
	all := &sample{}
	one := func(at time.Time) error {
		mu.Lock()
		var c *client
		if n := len(idle); n > 0 {
			c, idle = idle[n-1], idle[:n-1]
		}
		mu.Unlock()
		if c == nil {
			var err error
			if c, err = dial(t.address); err != nil {
				return err
			}
		}
		if err := c.do(request, false); err != nil {
			_ = c.conn.Close()
			return err
		}
		took := time.Since(at)
		mu.Lock()
		all.latency = append(all.latency, took)
		idle = append(idle, c)
		mu.Unlock()
		return nil
	}
	var running sync.WaitGroup
	for range maxOpen / 4 {
		running.Go(func() {
			for at := range due {
				if err := one(at); err != nil {
					mu.Lock()
					failed = errors.Join(failed, fmt.Errorf("%s, %s: %w", t.name, t.model, err))
					mu.Unlock()
					return
				}
			}
		})
	}
	begin := time.Now()
	every := time.Second / time.Duration(perSecond)
	for at := begin; at.Before(begin.Add(phase)) && ctx.Err() == nil; at = at.Add(every) {
		time.Sleep(time.Until(at))
		due <- at
	}
	close(due)
	running.Wait()
	for _, c := range idle {
		_ = c.conn.Close()
	}
	all.took, all.requests = time.Since(begin), len(all.latency)
	slices.Sort(all.latency)
	return all, failed
}

// hold opens streams that have begun and go on for ever, and gives what closes them.
func hold(t target, streams int) (release func(), err error) {
	request := t.request(true)
	var held []*client
	release = func() {
		for _, c := range held {
			_ = c.conn.Close()
		}
	}
	for range streams {
		c, err := dial(t.address)
		if err == nil {
			held = append(held, c)
			_, err = c.begin(request)
		}
		if err != nil {
			release()
			return nil, fmt.Errorf("%s, %s: %w", t.name, t.model, err)
		}
	}
	return release, nil
}

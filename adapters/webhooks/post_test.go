package webhooks

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/sluice-gateway/sluice/adapters/network"
	"github.com/sluice-gateway/sluice/adapters/secrets"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/webhook"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func posting(dial func(context.Context, string, string) (net.Conn, error)) *Deliverer {
	return New(Config{
		Secret: func(context.Context, string, catalog.Webhook) (secrets.Secret, error) { return secret, nil },
		Opened: network.MustHosts("receiver.example.test"), dial: dial,
		Now: time.Now, Random: func() float64 { return 0.5 }, Logger: slog.New(slog.DiscardHandler),
	})
}

var body = []byte(`{"id":"1"}`)

// Each way in which a receiver can go wrong has one cause, and none of them takes longer
// than an attempt may.
//
// Rules: U4, Q2.
func TestEachEndHasOneCause_U4(t *testing.T) {
	answer := func(text string) func(net.Conn) {
		return func(c net.Conn) {
			if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.Copy(io.Discard, req.Body)
				_, _ = io.WriteString(c, text)
			}
		}
	}
	for name, c := range map[string]struct {
		receiver func(net.Conn)
		dial     error
		want     result
		// most is how long it may take, on the virtual clock.
		most time.Duration
	}{
		"taken":           {receiver: answer("HTTP/1.1 204 No Content\r\n\r\n"), want: result{status: 204}},
		"error":           {receiver: answer("HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno"), want: result{cause: webhook.CauseStatus, status: 500}},
		"later":           {receiver: answer("HTTP/1.1 503 Busy\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n"), want: result{cause: webhook.CauseStatus, status: 503, retryAfter: 2 * time.Minute}},
		"gone":            {receiver: answer("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"), want: result{cause: webhook.CauseGone, status: 410}},
		"redirect":        {receiver: answer("HTTP/1.1 307 Elsewhere\r\nLocation: https://elsewhere.example.test/\r\nContent-Length: 0\r\n\r\n"), want: result{cause: webhook.CauseRedirect, status: 307}},
		"closes":          {receiver: func(net.Conn) {}, want: result{cause: webhook.CauseBroken}},
		"answers nothing": {receiver: func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, want: result{cause: webhook.CauseTimeout}, most: postTimeout},
		"speaks not HTTP": {receiver: answer("220 mail.example.test ESMTP\r\n"), want: result{cause: webhook.CauseBroken}},
		"huge headers":    {receiver: answer("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"), want: result{cause: webhook.CauseBroken}},
		"huge body": {receiver: func(c net.Conn) {
			answer("HTTP/1.1 200 OK\r\n\r\n")(c)
			for err := error(nil); err == nil; {
				_, err = c.Write(make([]byte, 4096))
			}
		}, want: result{status: 200}},
		"drips": {receiver: func(c net.Conn) {
			answer("HTTP/1.1 200 OK\r\n\r\n")(c)
			for err := error(nil); err == nil; {
				time.Sleep(time.Second)
				_, err = c.Write([]byte("."))
			}
		}, want: result{status: 200}, most: postTimeout},
		"body breaks off": {receiver: answer("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"), want: result{status: 200}},
		"is not there":    {dial: &net.OpError{Op: "dial", Err: errors.New("connection refused")}, want: result{cause: webhook.CauseConnect}},
		"is inside":       {dial: &network.RefusedError{Host: "metadata"}, want: result{cause: webhook.CauseAddress}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dials := 0
				var receivers sync.WaitGroup
				defer receivers.Wait()
				d := posting(func(context.Context, string, string) (net.Conn, error) {
					dials++
					if c.dial != nil {
						return nil, c.dial
					}
					client, server := net.Pipe()
					receivers.Go(func() { defer func() { _ = server.Close() }(); c.receiver(server) })
					return client, nil
				})
				began := time.Now()
				got := d.post(t.Context(), message{ID: uuid.New(), Webhook: "ops", Body: body}, catalog.Webhook{URL: "http://receiver.example.test/x?y=z"})
				if got != c.want || dials != 1 {
					t.Errorf("%+v after %d dials, want %+v", got, dials, c.want)
				}
				if took := time.Since(began); took > c.most {
					t.Errorf("took %s", took)
				}
				d.transport.CloseIdleConnections()
			})
		})
	}
}

// What arrives is signed so that the convention's own library takes it, at the time of
// the attempt, and goes where the webhook says.
//
// Rules: U4.
func TestWhatIsPosted_U4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *http.Request
		var sent []byte
		d := posting(func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				defer func() { _ = server.Close() }()
				req, err := http.ReadRequest(bufio.NewReader(server))
				if err != nil {
					t.Error(err)
					return
				}
				sent, _ = io.ReadAll(req.Body)
				got = req
				_, _ = fmt.Fprint(server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}()
			return client, nil
		})
		m := message{ID: uuid.New(), Webhook: "ops", Body: body}
		if r := d.post(t.Context(), m, catalog.Webhook{URL: "http://receiver.example.test/x?y=z"}); r.cause != "" {
			t.Fatal(r)
		}
		d.transport.CloseIdleConnections()
		synctest.Wait()
		if got.Method != http.MethodPost || got.Host != "receiver.example.test" || got.URL.RequestURI() != "/x?y=z" ||
			got.Header.Get("Content-Type") != "application/json" || got.Header.Get("Webhook-Id") != m.ID.String() {
			t.Errorf("posted %s %s %v", got.Method, got.URL, got.Header)
		}
		receiver, err := standard.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		// With its check of the time, against this bubble's clock.
		if err := receiver.Verify(sent, got.Header); err != nil {
			t.Error(err)
		}
		for name, values := range got.Header {
			if strings.Contains(strings.Join(values, ""), "MfKQ9r8") {
				t.Errorf("%s holds the secret", name)
			}
		}
	})
}

// Without a secret nothing is sent.
//
// Rules: U4.
func TestNothingIsPostedUnsigned_U4(t *testing.T) {
	d := posting(func(context.Context, string, string) (net.Conn, error) {
		t.Error("dialed")
		return nil, errors.New("dialed")
	})
	for _, find := range []func() (secrets.Secret, error){
		func() (secrets.Secret, error) { return "", &secrets.MissingError{Webhook: "ops"} },
		func() (secrets.Secret, error) { return "whsec_***", nil },
	} {
		d.Secret = func(context.Context, string, catalog.Webhook) (secrets.Secret, error) { return find() }
		if r := d.post(t.Context(), message{Body: body}, catalog.Webhook{URL: "https://receiver.example.test"}); r != (result{cause: webhook.CauseSecret}) {
			t.Errorf("%+v", r)
		}
	}
}

// A webhook reaches nothing inside the own network that was not opened: not by what its
// address says, not by what a name resolves to, and not in the clear.
//
// Rules: U4, Z1.
func TestWebhooksReachNothingInside_U4_Z1(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was reached", r.Host) }))
	defer inside.Close()
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	// Every name is this machine's.
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go resolveAll(server)
		return client, nil
	}}
	d := New(Config{
		Secret:   func(context.Context, string, catalog.Webhook) (secrets.Secret, error) { return secret, nil },
		Resolver: resolver, Now: time.Now, Random: func() float64 { return 0.5 }, Logger: slog.New(slog.DiscardHandler),
	})
	defer d.transport.CloseIdleConnections()
	for _, address := range []string{
		"https://127.0.0.1:" + port, "https://[::1]:" + port, "https://2130706433:" + port, "https://localhost:" + port,
		"https://169.254.169.254/latest", "https://metadata.internal", "https://10.0.0.1",
		"https://rebound.example.test:" + port, "http://rebound.example.test:" + port, "http://93.184.216.34",
	} {
		if r := d.post(t.Context(), message{Body: body}, catalog.Webhook{URL: address}); r != (result{cause: webhook.CauseAddress}) {
			t.Errorf("%s: %+v", address, r)
		}
	}
	// What is opened is reached, in the clear as well.
	open := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer open.Close()
	d = New(Config{
		Secret: func(context.Context, string, catalog.Webhook) (secrets.Secret, error) { return secret, nil },
		Opened: network.MustHosts(open.Listener.Addr().String()), Now: time.Now, Random: func() float64 { return 0.5 }, Logger: slog.New(slog.DiscardHandler),
	})
	defer d.transport.CloseIdleConnections()
	if r := d.post(t.Context(), message{Body: body}, catalog.Webhook{URL: open.URL + "/x"}); r != (result{status: 200}) {
		t.Errorf("an opened host: %+v", r)
	}
}

// resolveAll answers every question with this machine's address, as DNS over TCP frames
// it.
func resolveAll(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		packed := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, packed); err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(packed) != nil {
			return
		}
		m.Response, m.Additionals = true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
			}}
		}
		reply, err := m.Pack()
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

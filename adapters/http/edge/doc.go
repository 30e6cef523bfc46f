// Package edge is the HTTP server of the gateway, and the only package that
// imports fiber and fasthttp. fiber is fast because fasthttp re-uses
// everything; each of the savings is a trap for a gateway that holds long
// streams and settles money for them. The traps end here: what leaves this
// package is a plain [Request] and a context that tells the truth, what enters
// it is a plain [Reply].
//
// What goes wrong with bare fiber v2, and the rule that answers it:
//
//   - Strings die with the handler. c.Params kept after the handler reads the
//     next caller's bytes. Rule: everything in Request is copied (request.go).
//   - Nobody says that the client left. RequestCtx.Done means server shutdown,
//     and a write to a dead socket succeeds until the kernel hears of it. Rule:
//     one goroutine asks poll(2) for hang-ups on the descriptors of running
//     exchanges and never reads from them, so pipelined bytes stay where they
//     are (hangup.go; S7).
//   - SetBodyStreamWriter runs the body in a bare goroutine behind an in-memory
//     pipe: a panic there kills the process, a dead client is noticed several
//     flushes late, and back-pressure starts after the pipe is full. Rule: the
//     body runs on the connection's own goroutine and writes to the socket
//     itself (stream.go; S9).
//   - WriteTimeout is set once, after the handler, and cuts a live stream.
//     Rule: it stays 0 and each write has its own deadline, so only a client
//     that takes nothing is cut (conn.go).
//   - BodyLimit does not bound what gzip unpacks to; with streamed bodies it
//     bounds nothing; without them Content-Length bytes are allocated before
//     the first one has arrived, and a body over the limit erases the request's
//     path, with it the caller's dialect. Rule: bodies are streamed, grow as
//     they arrive, and are counted on the wire and unpacked (body.go; Z5).
//   - Of a streamed body fasthttp waits for the first bytes before it asks anybody, so
//     the refusal of one that is too long waits for a client that waits for it.
//     Rule: such a body is not read at all (body.go; Z5).
//   - A streamed body that ends early reads as complete (bare io.EOF), and one
//     that is not read to its end becomes the next request on the connection.
//     Rule: count against Content-Length, watch the socket's EOF, and close the
//     connection behind every body not read to its end (body.go).
//   - ReduceMemoryUsage gives the read buffer back while a streamed body still
//     reads from it, so two connections share one buffer. Rule: never together.
//     The price is that each connection keeps its read buffer, whose size is
//     also the header limit: DefaultHeaderBytes is part of every stream's memory.
//   - ReadTimeout 0 lets one byte per second hold a connection. Rule: header,
//     body and idle time are bounded apart (Limits).
//   - Of two Content-Length lines the last wins, and Transfer-Encoding beside
//     Content-Length is taken. Rule: both are refused (request.go).
//   - A failed SetReadDeadline on a closed connection panics ("BUG"), an accept
//     error such as EMFILE ends the server. Rule: deadlines on our connection
//     never fail, accept is tried again (conn.go).
//   - Shutdown waits for ever on an open stream, and leaves requests that run.
//     Rule: own shutdown: idle connections go at once, running exchanges when
//     they end or when the caller's patience does (server.go; O3).
//
// Patterns are those of net/http.ServeMux as far as they are needed here:
// "/v1/models/{id}" and a last "{rest...}".
package edge

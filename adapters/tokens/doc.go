// Package tokens counts o200k_base tokens for the estimate of A6.
//
// # Why not the library
//
// github.com/tiktoken-go/tokenizer has the same vocabulary and is what the tests
// here compare with, token for token. It is not used to serve: its pattern runs on a
// backtracking engine, at 150 us a KB with 1,400 allocations (a coding agent's
// 400 KB prompt would cost 60 ms of processor before its first byte is sent), and
// 64 KB of alternating blanks and line ends took 2.7 s, 256 KB a minute: anybody
// with a key could have stopped a worker. (It also drops U+007F, and splits blank
// lines otherwise than the pattern says.) The pattern is matched by hand here, in
// one pass that never looks at a byte more than a constant number of times: 8 us a
// KB of English, without an allocation.
//
// # What is bounded
//
// A piece without a break is cut every maxPieceBytes, because merging costs the
// square of a piece's length; a request is counted up to countedBytes, and what
// lies beyond is extrapolated. Both are planning numbers' liberties: a bill is
// made of what the provider reports.
package tokens

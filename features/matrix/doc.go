// Package matrix proves what arrives when a caller of one dialect is served by a
// provider of another: every capability, from every inbound dialect to every outbound
// one, through the real gateway against the scripted provider (P3, P5, P10).
//
//	go test ./features/matrix -v        prints the matrix; a cell that changed fails
//	go test ./features/matrix -update   writes docs/matrix.md again
package matrix

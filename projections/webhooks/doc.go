// Package webhooks turns news in the log into deliveries, and reads them.
//
// It follows the log like a read model and is none: what it makes is a queue that is
// worked off, so it is neither rebuilt nor verified, and is not among the views. The
// deliveries of an event are written in the transaction that moves the checkpoint past
// it: none is lost and none is there twice.
package webhooks

// Package webhook is what is told to whom and how (U4): which events of the log are
// news, what the message about them says, how it is signed, and when it is tried again.
package webhook

// Package neutral is the one stream in the middle: what every provider's answer
// is decoded into and what every caller's dialect is encoded from (P3). It is
// vocabulary only. Where caller and provider speak the same dialect the frame's
// own bytes travel beside the events, so that nothing unknown is lost (P4).
package neutral

package messages

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/sluice-gateway/sluice/domain/neutral"
)

// A caller of this dialect hands reasoning back as a thinking block with its
// signature. Reasoning of another issuer travels in that field too, under a mark of
// ours, so that it finds back to its issuer and to nobody else (K4): Anthropic is
// never sent a signature that is not its own.
const sealMark = "sluice.1."

// foreignSeal is what another dialect's provider gave out.
type foreignSeal struct {
	Issuer    neutral.Dialect `json:"i"`
	ID        string          `json:"d,omitempty"`
	Signature string          `json:"s,omitempty"`
	Encrypted string          `json:"e,omitempty"`
}

// signature is the text of a seal for a thinking block.
func signature(o neutral.OpaqueReasoning) string {
	if o.Issuer == neutral.Messages {
		return o.Signature
	}
	// Strings alone: there is nothing that could fail.
	inside, _ := json.Marshal(foreignSeal{o.Issuer, o.ID, o.Signature, o.Encrypted})
	return sealMark + base64.RawURLEncoding.EncodeToString(inside)
}

// unseal reads what signature wrote. A mark with anything else behind it is nobody's.
func unseal(s string) neutral.OpaqueReasoning {
	encoded, foreign := strings.CutPrefix(s, sealMark)
	if !foreign {
		if s == "" {
			return neutral.OpaqueReasoning{}
		}
		return neutral.OpaqueReasoning{Issuer: neutral.Messages, Signature: s}
	}
	var f foreignSeal
	inside, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || json.Unmarshal(inside, &f) != nil || f.Issuer == neutral.Messages {
		return neutral.OpaqueReasoning{}
	}
	return neutral.OpaqueReasoning{Issuer: f.Issuer, ID: f.ID, Signature: f.Signature, Encrypted: f.Encrypted}
}

// usable reports whether a thinking block's signature can be sent to a provider of
// this dialect. There is no thinking without one.
func usable(sig string) bool { return sig != "" && !strings.HasPrefix(sig, sealMark) }

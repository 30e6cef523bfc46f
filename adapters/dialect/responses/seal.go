package responses

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/domain/neutral"
)

// sealPrefix marks encrypted_content that is not a Responses provider's own: a
// signature of another dialect, which its caller carries to the next turn and which
// then goes back to its issuer and to nobody else (K4). Without it an Anthropic model
// could not go on after a tool call that it had thought about.
const sealPrefix = "sluice.seal.v1."

// sealed is what stands behind the prefix.
type sealed struct {
	Issuer    neutral.Dialect `json:"i"`
	ID        string          `json:"d,omitempty"`
	Signature string          `json:"s,omitempty"`
	Encrypted string          `json:"e,omitempty"`
	Redacted  string          `json:"r,omitempty"`
}

// encryptedContent is a seal as this dialect writes it.
func encryptedContent(o neutral.OpaqueReasoning) string {
	if o.Issuer == neutral.Responses {
		return o.Encrypted
	}
	// Strings alone: there is nothing that could fail.
	body, _ := json.Marshal(sealed{o.Issuer, o.ID, o.Signature, o.Encrypted, o.Redacted})
	return sealPrefix + base64.RawURLEncoding.EncodeToString(body)
}

// opaque is the seal of a reasoning item. What cannot be read back is nobody's and
// stays with this dialect.
func opaque(item gjson.Result) neutral.OpaqueReasoning {
	content := item.Get("encrypted_content").Str
	if content == "" {
		return neutral.OpaqueReasoning{}
	}
	own := neutral.OpaqueReasoning{Issuer: neutral.Responses, ID: strings.Clone(item.Get("id").Str), Encrypted: strings.Clone(content)}
	rest, foreign := strings.CutPrefix(content, sealPrefix)
	if !foreign {
		return own
	}
	var s sealed
	body, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil || json.Unmarshal(body, &s) != nil || s.Issuer == "" {
		return own
	}
	return neutral.OpaqueReasoning{Issuer: s.Issuer, ID: s.ID, Signature: s.Signature, Encrypted: s.Encrypted, Redacted: s.Redacted}
}

// unreadable reports whether an item of the input is reasoning that a Responses
// provider cannot read: another dialect's, or, once it has said so, any that is
// sealed (K5).
func unreadable(item gjson.Result, withoutSeals bool) bool {
	if item.Get("type").Str != "reasoning" {
		return false
	}
	content := item.Get("encrypted_content").Str
	return strings.HasPrefix(content, sealPrefix) || (withoutSeals && content != "")
}

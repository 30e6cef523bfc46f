package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Headers of a message. The first three are the Standard Webhooks convention; the last
// one signs the body and nothing else, for receivers that look at nothing else.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
	HeaderBody      = "X-Sluice-Signature"
)

// secretPrefix begins a secret that is written as the convention writes it: base64.
const secretPrefix = "whsec_"

// ErrSecret is a secret that begins with whsec_ and goes on with something else than
// base64.
var ErrSecret = errors.New("webhook: the secret begins with whsec_ and is no base64")

// Key is what signs: the bytes behind whsec_, or the secret as it is.
func Key(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok {
		return []byte(secret), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return nil, ErrSecret // the cause would repeat part of the secret
	}
	return key, nil
}

// Sign is the header fields of one attempt to send a message. The time is the
// attempt's: a receiver that refuses old ones must take a message that is sent again.
func Sign(key []byte, id uuid.UUID, at time.Time, body []byte) map[string]string {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signed := mac(key, []byte(id.String()+"."+timestamp+"."), body)
	return map[string]string{
		HeaderID:        id.String(),
		HeaderTimestamp: timestamp,
		HeaderSignature: "v1," + base64.StdEncoding.EncodeToString(signed),
		HeaderBody:      "sha256=" + hex.EncodeToString(mac(key, body)),
	}
}

func mac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

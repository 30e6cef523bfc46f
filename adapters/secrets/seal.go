package secrets

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// keyBytes is the length of master keys and data keys: AES-256.
const keyBytes = 32

// The variables that hold master keys, 32 bytes in base64.
const (
	MasterKeyEnv = "SLUICE_MASTER_KEY"
	// PreviousMasterKeyEnv still opens what was sealed under it, so that a key can be
	// changed without a moment at which half of the credentials cannot be opened.
	PreviousMasterKeyEnv = "SLUICE_MASTER_KEY_PREVIOUS"
)

// MasterKeyError is a variable that holds no master key, or none at all. It never
// repeats the value.
type MasterKeyError struct {
	Env     string
	Missing bool
}

func (e *MasterKeyError) Error() string {
	if e.Missing {
		return e.Env + " is not set: stored credentials are sealed under it; make one with `openssl rand -base64 32`"
	}
	return e.Env + " is not 32 bytes in base64: make one with `openssl rand -base64 32`"
}

// ErrNotOpened is a sealed secret that none of the master keys opens: it was sealed
// under another one, or its row is not what was written.
var ErrNotOpened = errors.New("the stored credential cannot be opened with " + MasterKeyEnv + " or " + PreviousMasterKeyEnv)

// MasterKeys seal under the current key and open with both. The zero value has
// none.
type MasterKeys struct {
	current, previous *masterKey
}

type masterKey struct {
	// id tells which key sealed a row. It is a hash of 32 random bytes, which nobody
	// can guess their way back from.
	id   string
	aead cipher.AEAD
}

// MasterKeysFrom reads both variables. The error is a *MasterKeyError for one that is
// malformed; none at all is no error until something has to be sealed.
func MasterKeysFrom(getenv func(string) string) (MasterKeys, error) {
	var m MasterKeys
	for _, v := range []struct {
		env  string
		into **masterKey
	}{{MasterKeyEnv, &m.current}, {PreviousMasterKeyEnv, &m.previous}} {
		text := getenv(v.env)
		if text == "" {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(key) != keyBytes {
			return MasterKeys{}, &MasterKeyError{Env: v.env}
		}
		sum := sha256.Sum256(slices.Concat([]byte("sluice master key id\x00"), key))
		*v.into = &masterKey{id: hex.EncodeToString(sum[:8]), aead: aesGCM(key)}
	}
	return m, nil
}

// Ready is a *MasterKeyError where there is no key to seal with.
func (m MasterKeys) Ready() error {
	if m.current == nil {
		return &MasterKeyError{Env: MasterKeyEnv, Missing: true}
	}
	return nil
}

// aesGCM draws a random nonce for each message and puts it in front.
func aesGCM(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(fmt.Sprintf("secrets: %v", err)) // the length was checked
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(fmt.Sprintf("secrets: %v", err))
	}
	return aead
}

// sealed is a secret as it is stored. Each secret has a data key of its own, so that
// a master key seals only few and random bytes, and another master key means
// sealing those again and not the secrets.
type sealed struct {
	MasterKey string
	Key       []byte
	Secret    []byte
}

// seal encrypts a secret for one place: bound to what it opens and to its row, it
// cannot be opened in another's place by whoever can only write the table.
func (m MasterKeys) seal(s Secret, of catalog.CredentialOf, id uuid.UUID) (sealed, error) {
	if err := m.Ready(); err != nil {
		return sealed{}, err
	}
	dataKey := make([]byte, keyBytes)
	_, _ = rand.Read(dataKey) // never fails
	place := placeOf(of, id)
	return sealed{
		MasterKey: m.current.id,
		Key:       m.current.aead.Seal(nil, nil, dataKey, place),
		Secret:    aesGCM(dataKey).Seal(nil, nil, []byte(s), place),
	}, nil
}

// open decrypts. The error is ErrNotOpened, without a cause: which of key, bytes and
// place is wrong is not to be told apart.
func (m MasterKeys) open(s sealed, of catalog.CredentialOf, id uuid.UUID) (Secret, error) {
	place := placeOf(of, id)
	dataKey, err := m.dataKey(s, place)
	if err != nil {
		return "", err
	}
	text, err := aesGCM(dataKey).Open(nil, nil, s.Secret, place)
	if err != nil {
		return "", ErrNotOpened
	}
	return Secret(text), nil
}

func (m MasterKeys) dataKey(s sealed, place []byte) ([]byte, error) {
	for _, k := range []*masterKey{m.current, m.previous} {
		if k == nil || k.id != s.MasterKey {
			continue
		}
		if dataKey, err := k.aead.Open(nil, nil, s.Key, place); err == nil && len(dataKey) == keyBytes {
			return dataKey, nil
		}
	}
	return nil, ErrNotOpened
}

// reseal puts the data key under the current master key; the secret's own bytes stay.
// changed is false when it is there already.
func (m MasterKeys) reseal(s sealed, of catalog.CredentialOf, id uuid.UUID) (_ sealed, changed bool, err error) {
	if err := m.Ready(); err != nil {
		return s, false, err
	}
	place := placeOf(of, id)
	dataKey, err := m.dataKey(s, place)
	if err != nil || s.MasterKey == m.current.id {
		return s, false, err
	}
	s.MasterKey, s.Key = m.current.id, m.current.aead.Seal(nil, nil, dataKey, place)
	return s, true, nil
}

// placeOf is the associated data of both encryptions. No id holds a zero byte.
func placeOf(of catalog.CredentialOf, id uuid.UUID) []byte {
	if of.Webhook != "" {
		return bytes.Join([][]byte{[]byte("sluice webhook 1"), []byte(of.Tenant), []byte(of.Webhook), id[:]}, []byte{0})
	}
	return bytes.Join([][]byte{[]byte("sluice credential 1"), []byte(of.Provider), []byte(of.Tenant), []byte(of.Key), id[:]}, []byte{0})
}

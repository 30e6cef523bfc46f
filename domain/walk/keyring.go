package walk

import "time"

// keyring is the order in which one request tries the keys of a pool (W17, W18):
// from its starting point on, parked keys put aside unless there is no other.
type keyring struct {
	ids    []string
	parked []string
	tried  int
}

func newKeyring(creds []Credential, first int, now time.Time) keyring {
	var k keyring
	for i := range creds {
		c := creds[(first+i)%len(creds)]
		if c.ParkedUntil.After(now) {
			k.parked = append(k.parked, c.ID)
		} else {
			k.ids = append(k.ids, c.ID)
		}
	}
	if len(k.ids) == 0 {
		// Skipped, never dropped: when all are parked the whole pool is tried anyway.
		k.ids, k.parked = k.parked, nil
	}
	return k
}

func (k *keyring) empty() bool { return len(k.ids) == 0 }

// parkedIDs are the keys that were put aside.
func (k *keyring) parkedIDs() []string { return k.parked }

// next is the next key that this request has not tried.
func (k *keyring) next() (string, bool) {
	if k.tried >= len(k.ids) {
		return "", false
	}
	k.tried++
	return k.ids[k.tried-1], true
}

// left reports whether a key remains untried.
func (k *keyring) left() bool { return k.tried < len(k.ids) }

// again gives back the key that was tried last, for a call on the same credential.
func (k *keyring) again() {
	if k.tried > 0 {
		k.tried--
	}
}

// rewound starts the pool over: after a pause every key may have recovered.
func (k keyring) rewound() keyring {
	k.tried = 0
	return k
}

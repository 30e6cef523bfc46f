package fakeprovider

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// arguments are what follows a fault's name, between colons.
type arguments []string

// maxCount bounds numbers in names, maxSize sizes: a name must not make the
// server allocate what it likes. 64 MiB is above every frame limit that a
// client could want to test.
const (
	maxCount = 1_000_000
	maxSize  = 64 << 20
)

func (a arguments) word(i int, otherwise string) string {
	if i < len(a) && a[i] != "" {
		return a[i]
	}
	return otherwise
}

func (a arguments) oneOf(i int, otherwise string, allowed ...string) (string, error) {
	word := a.word(i, otherwise)
	for _, candidate := range allowed {
		if word == candidate {
			return word, nil
		}
	}
	return "", fmt.Errorf("%q is none of %s", word, strings.Join(allowed, ", "))
}

func (a arguments) count(i, otherwise int) (int, error) {
	if a.word(i, "") == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(a[i])
	if err != nil || n < 0 || n > maxCount {
		return 0, fmt.Errorf("%q is not a number between 0 and %d", a[i], maxCount)
	}
	return n, nil
}

// size reads bytes: "100", "64k", "1m".
func (a arguments) size(i, otherwise int) (int, error) {
	word := a.word(i, "")
	if word == "" {
		return otherwise, nil
	}
	unit := 1
	switch word[len(word)-1] {
	case 'k':
		unit, word = 1<<10, word[:len(word)-1]
	case 'm':
		unit, word = 1<<20, word[:len(word)-1]
	}
	n, err := strconv.Atoi(word)
	if err != nil || n <= 0 || n > maxSize/unit {
		return 0, fmt.Errorf("%q is not a size up to %dm", a[i], maxSize>>20)
	}
	return n * unit, nil
}

func (a arguments) duration(i int, otherwise time.Duration) (time.Duration, error) {
	word := a.word(i, "")
	if word == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 20ms", a[i])
	}
	return d, nil
}

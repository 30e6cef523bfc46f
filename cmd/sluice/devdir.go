package main

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// devDir is where sluice dev keeps what lives from one start to the next.
type devDir string

// What stands in it, beside postgres/.
const (
	databaseFile     = "database-url" // only while dev runs
	masterKeyFile    = "master-key"
	adminKeyFile     = "admin-key"
	demoKeyFile      = "demo-key"
	fakeProviderFile = "fakeprovider-address"
)

// defaultDataDir is relative: a checkout has its own.
const defaultDataDir = ".sluice"

// dataDir is SLUICE_DATA_DIR.
func dataDir() string { return cmp.Or(os.Getenv("SLUICE_DATA_DIR"), defaultDataDir) }

// openDevDir makes the directory. Others may pass through it, because PostgreSQL
// refuses to run as root and its account has to reach postgres/ below; they can
// read nothing: every file is 0600.
func openDevDir(path string) (devDir, error) {
	if err := os.MkdirAll(path, 0o711); err != nil {
		return "", fmt.Errorf("the data directory cannot be made (%w): choose another with --data-dir or SLUICE_DATA_DIR", err)
	}
	// Root's umask is often 077.
	return devDir(path), os.Chmod(path, 0o711)
}

func (d devDir) path(name string) string { return filepath.Join(string(d), name) }

// read is a file's text, empty if it is not there.
func (d devDir) read(name string) (string, error) {
	text, err := os.ReadFile(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// write replaces a file in one step, so that a crash leaves the old text or the
// new one.
func (d devDir) write(name, text string) error {
	f, err := os.CreateTemp(string(d), name+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), d.path(name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func (d devDir) remove(name string) error {
	err := os.Remove(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// secret is a file's text; the first time it is made.
func (d devDir) secret(name string, generate func() string) (string, error) {
	text, err := d.read(name)
	if err != nil || text != "" {
		return text, err
	}
	text = generate()
	return text, d.write(name, text)
}

// masterKey seals stored credentials: 32 bytes, base64.
func (d devDir) masterKey() (string, error) {
	return d.secret(masterKeyFile, func() string {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		return base64.StdEncoding.EncodeToString(key)
	})
}

// adminKey is the bootstrap key of the admin API.
func (d devDir) adminKey() (string, error) {
	return d.secret(adminKeyFile, func() string { return "sk-sluice-admin-" + strings.ToLower(rand.Text()) })
}

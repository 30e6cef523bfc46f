package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

const downloadVersion = embeddedpostgres.V16

// openDownload runs a private cluster from programs downloaded into a cache.
func openDownload(ctx context.Context, opts Options) (*Server, error) {
	cache, err := downloadCache()
	if err != nil {
		return nil, unavailable("no cache directory to download into: %v", err)
	}
	downloaded, err := download(ctx, cache, embeddedpostgres.DefaultConfig())
	if err != nil {
		return nil, err
	}
	return openCluster(ctx, opts, downloaded)
}

// downloadCache is outside every checkout: the user's cache directory, or for
// root one that the server's account can enter.
func downloadCache() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/sluice/postgresql", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "sluice", "postgresql"), err
}

// download returns the programs in the cache, fetching them once. Of the library
// only its downloader is wanted: it cannot run as root and knows nothing of
// locks, orphans and crashes. It has no call for that alone, so its throwaway
// server is started and stopped; as root that start fails after the unpacking,
// which is all the same to us.
func download(ctx context.Context, cache string, config embeddedpostgres.Config) ([]programs, error) {
	bin := filepath.Join(cache, string(downloadVersion))
	ready := func() []programs { return probePrograms(ctx, []string{filepath.Join(bin, "bin")}) }
	if err := mkdirAllOpen(cache); err != nil {
		return nil, unavailable("cannot write the download cache %s", cache)
	}
	// Of many test packages that run at once, one downloads.
	lock, err := awaitLock(ctx, cache)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.release() }()
	if found := ready(); len(found) > 0 {
		return found, nil
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "sluice-download-")
	if err != nil {
		return nil, err
	}
	library := embeddedpostgres.NewDatabase(config.Version(downloadVersion).Port(port).
		CachePath(cache).BinariesPath(bin).RuntimePath(scratch).Logger(io.Discard))

	// The library's requests have no context. When ours ends first, the
	// goroutine ends with the download, or with the process that gave up on it.
	result := make(chan error, 1)
	go func() {
		err := library.Start()
		if err == nil {
			err = library.Stop()
		}
		http.DefaultClient.CloseIdleConnections()
		result <- errors.Join(err, os.RemoveAll(scratch))
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case err = <-result:
	}
	if found := ready(); len(found) > 0 {
		return found, nil
	}
	return nil, unavailable("PostgreSQL %s cannot be downloaded for this machine: %v", downloadVersion, err)
}

// freePort is for the throwaway server of the download alone.
func freePort() (uint32, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return uint32(listener.Addr().(*net.TCPAddr).Port), nil
}

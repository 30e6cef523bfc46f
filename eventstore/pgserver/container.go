package pgserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

const (
	// containerImage is pinned to a major version, so that a kept volume stays
	// readable and two machines test against the same server.
	containerImage = "postgres:16-alpine"

	containerData = "/var/lib/postgresql/data"

	// dockerProbe bounds the question whether a daemon answers.
	dockerProbe = 5 * time.Second

	// containerEnd bounds the removal of a container after its server stopped.
	containerEnd = 20 * time.Second
)

// docker is a PostgreSQL in a container. All code that knows testcontainers is
// in this file.
type docker struct {
	container *postgres.PostgresContainer
	address   *url.URL
	lock      *dirLock // nil for a throwaway container
}

// openContainer runs the server in Docker. No daemon means that this source does
// not exist; a daemon that cannot run the image is an error that says so.
func openContainer(ctx context.Context, opts Options) (_ *Server, err error) {
	if err := probeDocker(ctx); err != nil {
		return nil, unavailable("no Docker daemon answers")
	}
	d := &docker{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	run, where, err := d.options(opts)
	if err != nil {
		return nil, err
	}
	d.container, err = postgres.Run(ctx, containerImage, run...)
	if err != nil {
		return nil, fmt.Errorf("the Docker image %s does not run: %w", containerImage, err)
	}
	if err := d.readAddress(ctx); err != nil {
		return nil, err
	}
	return &Server{backend: d, choice: fmt.Sprintf("Docker image %s, data in %s", containerImage, where)}, nil
}

// options translates Options for testcontainers and says where the data will be.
// A kept cluster goes into a named volume: a directory of the host would belong
// to the container's account. The directory is still locked, as for a cluster.
func (d *docker) options(opts Options) (run []testcontainers.ContainerCustomizer, where string, err error) {
	run = []testcontainers.ContainerCustomizer{
		postgres.BasicWaitStrategies(),
		testcontainers.WithLogger(quiet{}),
	}
	if opts.Durable {
		run = append(run, testcontainers.WithCmd("postgres", "-c", "shared_buffers=64MB"))
	} else {
		run = append(run, testcontainers.WithCmd("postgres", "-c", "fsync=off", "-c", "full_page_writes=off"))
	}
	if opts.DataDir == "" {
		return run, "the container", nil
	}
	dir, err := filepath.Abs(opts.DataDir)
	if err != nil {
		return nil, "", err
	}
	if err := mkdirAllOpen(dir); err != nil {
		return nil, "", err
	}
	if d.lock, err = lockDir(dir); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256([]byte(dir))
	volume := "sluice-" + hex.EncodeToString(sum[:6])
	// A bind, not a testcontainers mount: those are labelled for its cleanup,
	// which would remove the volume with the container.
	run = append(run, testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
		host.Binds = append(host.Binds, volume+":"+containerData)
	}))
	return run, "the volume " + volume, nil
}

// probeDocker returns an error when no daemon answers. testcontainers panics
// when it finds no trace of Docker at all.
func probeDocker(ctx context.Context) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("no Docker on this machine")
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, dockerProbe)
	defer cancel()
	provider, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(quiet{}))
	if err != nil {
		return err
	}
	return provider.Health(ctx) // closes the provider
}

// readAddress asks for the published port, which changes with every start.
func (d *docker) readAddress(ctx context.Context) error {
	text, err := d.container.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return fmt.Errorf("the container has no address: %w", err)
	}
	d.address, err = url.Parse(text)
	return err
}

func (d *docker) url() *url.URL { return d.address }

func (d *docker) start(ctx context.Context) error {
	if d.container.IsRunning() {
		return nil
	}
	if err := d.container.Start(ctx); err != nil {
		return fmt.Errorf("the container does not start again: %w", err)
	}
	if err := d.readAddress(ctx); err != nil {
		return err
	}
	return awaitAnswer(ctx, d.address.String(), nil)
}

// stop lets Docker send the image's stop signal, which is PostgreSQL's fast
// shutdown, and kill when that took too long.
func (d *docker) stop(ctx context.Context) error {
	grace := containerEnd
	if deadline, ok := ctx.Deadline(); ok {
		grace = min(grace, time.Until(deadline))
	}
	return d.end(max(grace, 0))
}

func (d *docker) kill() error { return d.end(0) }

// end stops the container within grace and kills it then.
func (d *docker) end(grace time.Duration) error {
	if d.container == nil || !d.container.IsRunning() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace+containerEnd)
	defer cancel()
	return d.container.Stop(ctx, &grace)
}

func (d *docker) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), containerEnd)
	defer cancel()
	var errs []error
	if d.container != nil {
		errs = append(errs, testcontainers.TerminateContainer(d.container, testcontainers.StopContext(ctx)))
	}
	if d.lock != nil {
		errs = append(errs, d.lock.release())
	}
	return errors.Join(errs...)
}

// quiet drops testcontainers' progress lines; what matters comes back as errors.
type quiet struct{}

var _ log.Logger = quiet{}

func (quiet) Printf(string, ...any) {}

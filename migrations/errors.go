package migrations

import (
	"errors"
	"fmt"
)

var (
	// ErrNoDatabase: the server is there, the database is not.
	ErrNoDatabase = errors.New("the database does not exist")
	// ErrUnreachable: nobody answers at the address, or not with these credentials.
	ErrUnreachable = errors.New("the database cannot be reached")
	// ErrForeignSchema: the database holds tables that are not ours.
	ErrForeignSchema = errors.New("the database holds another application's tables")
)

// ServerVersionError says that the server is older than the schema needs;
// versions as server_version_num.
type ServerVersionError struct{ Have, Need int }

func (e *ServerVersionError) Error() string {
	return fmt.Sprintf("PostgreSQL %d is too old, %d or newer is needed", e.Have/10000, e.Need/10000)
}

// BehindError says that migrations wait to be applied: run `sluice migrate`.
type BehindError struct {
	Version, Latest int64
	Pending         []Migration
}

func (e *BehindError) Error() string {
	return fmt.Sprintf("the schema is at version %d, this build needs %d: run `sluice migrate`", e.Version, e.Latest)
}

// NewerError says that a newer build has migrated the database.
type NewerError struct{ Version, Latest int64 }

func (e *NewerError) Error() string {
	return fmt.Sprintf("the schema is at version %d, this build knows only %d: run a newer sluice", e.Version, e.Latest)
}

// DigestError says that the applied migrations are not the text this build was
// made with (O11).
type DigestError struct {
	Version         int64
	Recorded, Built string
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("schema version %d was made by other migrations (recorded digest %.12s, this build's %.12s)",
		e.Version, e.Recorded, e.Built)
}

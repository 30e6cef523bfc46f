package secrets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// DB is a pool or a connection with the rights of the application.
type DB interface {
	Querier
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// ErrGone is a credential whose row is not there: it was deleted or replaced, and
// this worker has not heard of it yet.
var ErrGone = errors.New("the stored credential is not there any more")

// Vault keeps sealed secrets in a table of their own. It says nothing about which of
// them is in use: that is the log's word.
type Vault struct {
	DB      DB
	Masters MasterKeys
}

// Put seals a secret into a new row. It is not in use until the log names the id.
func (v *Vault) Put(ctx context.Context, of catalog.CredentialOf, id uuid.UUID, s Secret) error {
	box, err := v.Masters.seal(s, of, id)
	if err != nil {
		return err
	}
	_, err = v.DB.Exec(ctx, `
		insert into stored_credentials (id, stream, name, master_key, sealed_key, sealed)
		values ($1, $2, $3, $4, $5, $6)`,
		id, of.Stream(), of.Key, box.MasterKey, box.Key, box.Secret)
	return about("store", err)
}

// Open reads the secret that the log names. The error is ErrGone, ErrNotOpened or
// the database's.
func (v *Vault) Open(ctx context.Context, c catalog.StoredCredential) (Secret, error) {
	box, err := v.read(ctx, c.ID)
	if err != nil {
		return "", err
	}
	return v.Masters.open(box, c.CredentialOf, c.ID)
}

func (v *Vault) read(ctx context.Context, id uuid.UUID) (box sealed, err error) {
	err = v.DB.QueryRow(ctx, `select master_key, sealed_key, sealed from stored_credentials where id = $1`, id).
		Scan(&box.MasterKey, &box.Key, &box.Secret)
	if errors.Is(err, pgx.ErrNoRows) {
		return box, ErrGone
	}
	return box, about("read", err)
}

// Drop deletes every row of a name but the one to keep; uuid.Nil keeps none.
func (v *Vault) Drop(ctx context.Context, of catalog.CredentialOf, keep uuid.UUID) error {
	_, err := v.DB.Exec(ctx, `delete from stored_credentials where stream = $1 and name = $2 and id <> $3`,
		of.Stream(), of.Key, keep)
	return about("delete", err)
}

// Rotation is what a rotation did.
type Rotation struct {
	// Resealed went under the current master key; Unchanged were there already.
	Resealed  int `json:"resealed"`
	Unchanged int `json:"unchanged"`
	// Unopened could be opened with neither key, or are gone.
	Unopened []catalog.CredentialOf `json:"unopened"`
	// Pruned rows belonged to nothing any more.
	Pruned int64 `json:"pruned"`
}

// orphanAge spares a row that somebody is about to name in the log.
const orphanAge = time.Hour

// Rotate puts everything that is in use under the current master key, one row at a
// time: it may be interrupted and run again. It also deletes rows that nothing
// uses: of a provider that was removed, or of a command that ended half-way.
func (v *Vault) Rotate(ctx context.Context, held []catalog.StoredCredential) (r Rotation, err error) {
	used := make([]uuid.UUID, 0, len(held))
	for _, c := range held {
		used = append(used, c.ID)
		switch changed, err := v.reseal(ctx, c); {
		case errors.Is(err, ErrGone), errors.Is(err, ErrNotOpened):
			r.Unopened = append(r.Unopened, c.CredentialOf)
		case err != nil:
			return r, err
		case changed:
			r.Resealed++
		default:
			r.Unchanged++
		}
	}
	tag, err := v.DB.Exec(ctx, `
		delete from stored_credentials where id <> all($1) and stored_at < now() - make_interval(secs => $2)`,
		used, orphanAge.Seconds())
	r.Pruned = tag.RowsAffected()
	return r, about("delete", err)
}

func (v *Vault) reseal(ctx context.Context, c catalog.StoredCredential) (bool, error) {
	box, err := v.read(ctx, c.ID)
	if err != nil {
		return false, err
	}
	box, changed, err := v.Masters.reseal(box, c.CredentialOf, c.ID)
	if err != nil || !changed {
		return false, err
	}
	_, err = v.DB.Exec(ctx, `update stored_credentials set master_key = $2, sealed_key = $3 where id = $1`,
		c.ID, box.MasterKey, box.Key)
	return true, about("reseal", err)
}

// about names the step and keeps the statement's arguments, which are sealed, out of
// any text: drivers do not print them, and nothing here does.
func about(step string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s a stored credential: %w", step, err)
}

package eventstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// dialTimeout bounds a connection attempt of the lane: while it runs, callers wait.
const dialTimeout = 2 * time.Second

// errDial: no connection could be made.
var errDial = errors.New("eventstore: cannot connect")

// dialer opens connections for the lane.
type dialer struct{ config *pgconn.Config }

// laneConn is one of a lane's connections; it outlives broken ones.
type laneConn struct {
	pg       *pgconn.PgConn
	types    *pgtype.Map
	pipeline *pgconn.Pipeline
	*statements
	// fresh says that the connection is new since it was last used.
	fresh bool
}

// open makes sure of a working connection.
func (c *laneConn) open(ctx context.Context, d dialer) error {
	if c.pg != nil && !c.pg.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	pg, err := pgconn.ConnectConfig(ctx, d.config)
	if err != nil {
		return fmt.Errorf("%w: %w", errDial, err)
	}
	if err = pg.Exec(ctx, laneSettings).Close(); err == nil {
		c.statements, err = prepare(ctx, pg)
	}
	if err != nil {
		closeConn(pg)
		return fmt.Errorf("%w: %w", errDial, err)
	}
	c.pg, c.types, c.fresh = pg, pgtype.NewMap(), true
	return nil
}

func (c *laneConn) begin(ctx context.Context) { c.pipeline = c.pg.StartPipeline(ctx) }

// abandon rolls back whatever the pipeline was doing, so that the connection can be
// used again; if that fails it is closed.
func (c *laneConn) abandon() {
	if c.pipeline == nil {
		return
	}
	if !c.pg.IsClosed() {
		c.pipeline.SendQueryStatement(c.rollback, nil, nil, nil)
		_ = c.pipeline.Sync()
	}
	// Close reads all that is outstanding, the errors of a failed transaction included.
	_ = c.pipeline.Close()
	c.pipeline = nil
	if !c.pg.IsClosed() && c.pg.TxStatus() != 'I' { // idle
		closeConn(c.pg)
	}
}

func (c *laneConn) close() {
	if c.pg != nil {
		closeConn(c.pg)
	}
}

// closeConn says goodbye without waiting long for an answer.
func closeConn(pg *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = pg.Close(ctx)
}

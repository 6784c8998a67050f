package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// channel is what writers of the schema notify.
func (s *Store) channel() string { return "caddy_analytics_" + s.schema }

// Watch calls changed after another node has put records, until ctx ends.
func (s *Store) Watch(ctx context.Context, changed func()) error {
	const doing = "listening to other nodes"
	if err := s.listen(ctx, changed); ctx.Err() == nil {
		return s.told(ctx, doing, err)
	}
	return nil
}

func (s *Store) listen(ctx context.Context, changed func()) error {
	conn, err := pgx.ConnectConfig(ctx, s.session)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_ = conn.Close(closing) // nothing is left to be said
	}()
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{s.channel()}.Sanitize()); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock_shared($1)`, lockNumber(s.schema, nodeLock)); err != nil {
		return err
	}
	changed() // nobody told of what was written before
	for {
		told, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if told.Payload != s.id { // what this store wrote is known here
			changed()
		}
	}
}

// nodeLock is shared by the sessions that listen: the server knows how many there are.
const nodeLock = "nodes"

// Nodes implements registry.Sharer.
func (s *Store) Nodes(ctx context.Context) (n int, err error) {
	const doing = "counting nodes"
	limited, cancel, err := s.limited(ctx, patience)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	defer cancel()
	err = s.pool.QueryRow(limited, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted AND objsubid = 1
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND ((classid::bigint << 32) | objid::bigint) = $1`,
		lockNumber(s.schema, nodeLock)).Scan(&n)
	return n, s.told(ctx, doing, err)
}

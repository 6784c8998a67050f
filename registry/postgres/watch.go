package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// channel is the channel that writers of the schema notify. It does not contain the name of the schema, which may be as long as that of a channel.
func (s *Store) channel() string {
	return fmt.Sprintf("caddy_analytics_%016x", uint64(lockNumber(s.schema, "changes"))) //nolint:gosec // any number will do
}

// Watch calls changed after another node has put records, until ctx ends.
func (s *Store) Watch(ctx context.Context, changed func()) error {
	const doing = "listening to other nodes"
	if err := s.listen(ctx, changed); ctx.Err() == nil {
		return s.callerError(ctx, doing, err)
	}
	return nil
}

func (s *Store) listen(ctx context.Context, changed func()) error {
	conn, err := pgx.ConnectConfig(ctx, s.session)
	if err != nil {
		return err
	}
	defer closeConn(ctx, conn)
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{s.channel()}.Sanitize()); err != nil {
		return err
	}
	changed() // writes before this sent no notification
	for {
		told, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if told.Payload != s.id { // this store knows what it wrote itself
			changed()
		}
	}
}

package postgres

import (
	"context"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Setting returns a setting of a connection of the pool.
func (s *Store) Setting(ctx context.Context, name string) (value string, err error) {
	err = s.pool.QueryRow(ctx, `SELECT current_setting($1)`, name).Scan(&value)
	return value, err
}

// Moment calls read with what Copy copies.
func (s *Store) Moment(ctx context.Context, read func(*registry.Contents) error) error {
	return s.contents(ctx, repeatableRead, nil, read)
}

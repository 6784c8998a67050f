package postgres

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// version is the version of the tables.
const version = 2

//go:embed migrations/*.sql
var migrations embed.FS

// migrate upgrades the tables in one transaction, one node at a time, and returns the schema that they are in. It creates the schema that the DSN names if it
// is missing.
func migrate(ctx context.Context, config *pgx.ConnConfig) (schema string, err error) {
	ctx, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", err
	}
	defer closeConn(ctx, conn)
	tx, err := conn.Begin(ctx)
	if err != nil {
		return "", err
	}
	defer rollBack(ctx, tx)
	// Everyone that upgrades a registry in this database waits here, whatever its schema is.
	if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = 0`); err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockNumber("", "migrations")); err != nil {
		return "", fmt.Errorf("waiting for other nodes: %w", err)
	}
	if schema, ok := config.RuntimeParams["search_path"]; ok {
		if err := makeSchema(ctx, tx, schema); err != nil {
			return "", fmt.Errorf("making the schema %s: %w", schema, err)
		}
	}
	var found *string
	if err := tx.QueryRow(ctx, `SELECT current_schema()`).Scan(&found); err != nil {
		return "", err
	}
	if found == nil {
		return "", errors.New("there is no schema for the tables: name one by search_path in the DSN")
	}
	current, err := tablesVersion(ctx, tx)
	if err != nil {
		return "", err
	}
	if current > version {
		return "", newerError(current)
	}
	for step := current + 1; step <= version; step++ {
		text, err := fs.ReadFile(migrations, fmt.Sprintf("migrations/%d.sql", step))
		if err != nil {
			return "", err
		}
		if _, err := tx.Exec(ctx, string(text)); err != nil {
			return "", fmt.Errorf("bringing its tables up to date: %w", err)
		}
	}
	if current < version {
		if _, err := tx.Exec(ctx, `UPDATE analytics_registry SET version = $1`, version); err != nil {
			return "", fmt.Errorf("bringing its tables up to date: %w", err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return "", fmt.Errorf("bringing its tables up to date: %w", err)
	}
	return *found, nil
}

// closeConn closes a connection that is no longer needed.
func closeConn(ctx context.Context, conn *pgx.Conn) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = conn.Close(limited) // its socket is closed in any case
}

// makeSchema creates a schema unless it exists: a role that finds it needs no right to create one.
func makeSchema(ctx context.Context, tx pgx.Tx, schema string) error {
	var there bool
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)`, schema).Scan(&there); err != nil || there {
		return err
	}
	_, err := tx.Exec(ctx, `CREATE SCHEMA `+pgx.Identifier{schema}.Sanitize())
	return err
}

func newerError(current int) error {
	return fmt.Errorf("its tables are at version %d, and this program knows versions up to %d: a newer version of the program wrote it", current, version)
}

// tablesVersion returns the version of the tables; 0 if there are none.
func tablesVersion(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) (current int, err error) {
	var there bool
	if err := db.QueryRow(ctx, `SELECT to_regclass(quote_ident(current_schema()) || '.analytics_registry') IS NOT NULL`).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = db.QueryRow(ctx, `SELECT version FROM analytics_registry`).Scan(&current)
	return current, err
}

// inspect says what Open would do to a database. It only reads.
func inspect(ctx context.Context, dsn string) (state registry.StoreState, err error) {
	config, err := parse(dsn)
	if err != nil {
		return state, err
	}
	state = registry.StoreState{Name: nameOf(config.ConnConfig), Current: version}
	ctx, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return state, fmt.Errorf("inspecting the registry %s: %w", state.Name, openError(err))
	}
	defer closeConn(ctx, conn)
	if state.Version, err = tablesVersion(ctx, conn); err != nil {
		return state, fmt.Errorf("inspecting the registry %s: %w", state.Name, openError(err))
	}
	if 0 < state.Version && state.Version < version {
		state.Upgrade = fmt.Sprintf("the registry's tables in %s are brought from version %d to %d in one transaction; no copy of them is kept: back up the database first",
			state.Name, state.Version, version)
	}
	return state, nil
}

// lockNumber returns the number of an advisory lock: all programs that use the database share these.
func lockNumber(schema, name string) int64 {
	sum := sha256.Sum256([]byte("caddy-analytics\x00" + schema + "\x00" + name))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // any number will do
}

func newID() string { return rand.Text() }

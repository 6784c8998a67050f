package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrateTries is how often migrate tries while the tables stay as they are. When several processes open a new file at once, all
// but one find a table made under their feet; the version is a later one then when they look again.
const migrateTries = 10

// migrate brings the tables up to date.
func migrate(ctx context.Context, db *sql.DB) error {
	var failed error
	for tries, reached := 0, int64(-1); tries < migrateTries; tries++ {
		p, err := migrator(db)
		if err != nil {
			return err
		}
		current, target, err := p.GetVersions(ctx)
		if err != nil {
			failed = err
			continue
		}
		if current > target {
			return fmt.Errorf("its tables are at version %d, and this program knows versions up to %d: a newer version of the program wrote it", current, target)
		}
		if current > reached {
			tries, reached = 0, current
		}
		if _, err := p.Up(ctx); err != nil {
			failed = err
			continue
		}
		return nil
	}
	return fmt.Errorf("bringing its tables up to date: %w", failed)
}

func migrator(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("reading the migrations: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if errors.Is(err, goose.ErrNoMigrations) {
		panic("BUG: no migrations are embedded")
	}
	return p, err
}

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// The parts of a copy of a registry: a file of this store, and a folder of kept data. Other stores write their copies in this form too.
const (
	copyFile   = FileName
	copyFolder = "kept"
	keptSuffix = ".kept"
)

// CreateCopy creates an empty copy in an empty folder, as a store to be filled.
func CreateCopy(ctx context.Context, folder string) (*Store, error) {
	s, err := Open(ctx, filepath.Join(folder, copyFile))
	if err != nil {
		return nil, err
	}
	s.locks.dir = filepath.Join(folder, copyFolder)
	return s, nil
}

// OpenCopy opens the copy of a registry in a folder as a store of its own.
func OpenCopy(ctx context.Context, folder string) (*Store, error) {
	if _, err := os.Stat(filepath.Join(folder, copyFile)); err != nil {
		return nil, err
	}
	return CreateCopy(ctx, folder)
}

// Copy implements registry.Copier.
func (s *Store) Copy(ctx context.Context, folder string) error {
	if err := keep(ctx, s.read, filepath.Join(folder, copyFile)); err != nil {
		return fmt.Errorf("copying the registry: %w", err)
	}
	if err := copyKept(s.locks.dir, filepath.Join(folder, copyFolder)); err != nil {
		return fmt.Errorf("copying what the registry keeps: %w", err)
	}
	return nil
}

// copyKept copies the files of kept data, if there are any.
func copyKept(from, to string) error {
	files, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), keptSuffix) || !f.Type().IsRegular() {
			continue
		}
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		if err := copyFileWhole(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFileWhole(from, to string) error {
	in, err := os.Open(from) //nolint:gosec // beside the registry, or in a copy of it
	if err != nil {
		return err
	}
	defer in.Close()
	return wholefile.Write(to, in)
}

// Examine implements registry.Copier.
func (*Store) Examine(ctx context.Context, folder string) error { return ExamineCopy(ctx, folder) }

// ExamineCopy brings the copy of a registry up to date, and reads all of it: the file must be undamaged, and all records readable.
func ExamineCopy(ctx context.Context, folder string) (err error) {
	copied, err := OpenCopy(ctx, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	var found string
	if err := copied.read.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("its file is damaged: %s", found)
	}
	all, err := copied.Load(ctx, 0)
	if err != nil {
		return err
	}
	for i := range all.Records {
		if _, err := registry.UniqueKeys(&all.Records[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) replaceKept(folder string) error {
	if err := os.MkdirAll(s.locks.dir, 0o700); err != nil {
		return err
	}
	old, err := os.ReadDir(s.locks.dir)
	if err != nil {
		return err
	}
	for _, f := range old {
		if strings.HasSuffix(f.Name(), keptSuffix) {
			if err := os.Remove(filepath.Join(s.locks.dir, f.Name())); err != nil {
				return err
			}
		}
	}
	return copyKept(folder, s.locks.dir)
}

// replaceAll copies the tables of an attached file. The revision is later than any that a reader of this file has seen, and everything before it is forgotten,
// so that readers read everything anew. All records get this revision, so that nobody overwrites those that they have not seen.
const replaceAll = `
	DELETE FROM unique_keys; DELETE FROM records; DELETE FROM entries; DELETE FROM logs;
	UPDATE registry SET revision = max(revision, (SELECT revision FROM copied.registry)) + 1;
	UPDATE registry SET forgotten = revision;
	INSERT INTO records SELECT project, kind, id, (SELECT revision FROM main.registry), data FROM copied.records WHERE data IS NOT NULL;
	INSERT INTO unique_keys SELECT * FROM copied.unique_keys;
	INSERT INTO entries SELECT * FROM copied.entries`

// Replace implements registry.Copier.
func (s *Store) Replace(ctx context.Context, folder string, before uint64) (err error) {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }() // it goes back to the pool
	if _, err := conn.ExecContext(ctx, `ATTACH DATABASE ? AS copied`, filepath.Join(folder, copyFile)); err != nil {
		return fmt.Errorf("opening the copy: %w", err)
	}
	defer func() {
		_, detached := conn.ExecContext(context.WithoutCancel(ctx), `DETACH DATABASE copied`)
		err = errors.Join(err, detached)
	}()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	var revision int64
	if err := tx.QueryRowContext(ctx, `SELECT revision FROM main.registry`).Scan(&revision); err != nil {
		return fmt.Errorf("reading the revision: %w", err)
	}
	if unsigned(revision) != before {
		return registry.ErrStale
	}
	if _, err := tx.ExecContext(ctx, replaceAll); err != nil {
		return fmt.Errorf("copying the records: %w", err)
	}
	if err := s.replaceKept(filepath.Join(folder, copyFolder)); err != nil {
		return fmt.Errorf("replacing what is kept: %w", err)
	}
	return tx.Commit()
}

// Interface guard.
var _ registry.Copier = (*Store)(nil)

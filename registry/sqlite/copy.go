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

// What Copy writes: the file of the registry, and a folder of what is kept.
const (
	copyFile   = FileName
	copyFolder = "kept"
	keptSuffix = ".kept"
)

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

// copyKept copies the files of what is kept, if there are any.
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

// Replace implements registry.Copier.
func (s *Store) Replace(ctx context.Context, folder string) error {
	if err := s.replaceKept(filepath.Join(folder, copyFolder)); err != nil {
		return fmt.Errorf("replacing what is kept: %w", err)
	}
	return s.replaceRecords(ctx, filepath.Join(folder, copyFile))
}

// Examine implements registry.Copier: all records must be ones that can be read.
func (*Store) Examine(ctx context.Context, folder string) (err error) {
	path := filepath.Join(folder, copyFile)
	if _, err := os.Stat(path); err != nil {
		return err
	}
	copied, err := Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
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

// replaceAll copies the tables of an attached file. The revision is later than any that a reader of this file has seen, and all records
// that were there before are forgotten, so that readers read everything anew.
const replaceAll = `
	DELETE FROM unique_keys; DELETE FROM records; DELETE FROM entries; DELETE FROM logs;
	INSERT INTO records SELECT * FROM copied.records;
	INSERT INTO unique_keys SELECT * FROM copied.unique_keys;
	INSERT INTO entries SELECT * FROM copied.entries;
	UPDATE registry SET revision = max(revision, (SELECT revision FROM copied.registry)) + 1;
	UPDATE registry SET forgotten = revision`

func (s *Store) replaceRecords(ctx context.Context, path string) (err error) {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }() // it goes back to the pool
	if _, err := conn.ExecContext(ctx, `ATTACH DATABASE ? AS copied`, path); err != nil {
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
	if _, err := tx.ExecContext(ctx, replaceAll); err != nil {
		return fmt.Errorf("copying the records: %w", err)
	}
	return tx.Commit()
}

// Interface guard.
var _ registry.Copier = (*Store)(nil)

package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Copy writes what waits now, and the files set aside, into an empty folder, which Open can open. Nothing is forgotten meanwhile; Append
// goes on.
func (j *Journal) Copy(ctx context.Context, folder string) error {
	j.reading.Lock()
	defer j.reading.Unlock()
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return ErrClosed
	}
	var parts []part
	for _, s := range j.segments {
		if s.last > j.forgotten {
			parts = append(parts, part{s, s.size})
		}
	}
	j.mu.Unlock()
	if err := j.copyTo(ctx, folder, parts); err != nil {
		return fmt.Errorf("copying the event log: %w", err)
	}
	return nil
}

func (j *Journal) copyTo(ctx context.Context, folder string, parts []part) error {
	for _, p := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := copyNew(filepath.Join(folder, filepath.Base(p.path)), io.NewSectionReader(p.file, 0, p.end)); err != nil {
			return err
		}
	}
	position := io.NewSectionReader(j.position, 0, 2*positionPlace)
	if err := copyNew(filepath.Join(folder, positionFile), position); err != nil {
		return err
	}
	return j.copyAside(ctx, filepath.Join(folder, filepath.Base(j.AsideDir())))
}

func (j *Journal) copyAside(ctx context.Context, folder string) error {
	files, err := os.ReadDir(j.AsideDir())
	if err != nil {
		return err
	}
	for _, f := range files {
		if !f.Type().IsRegular() {
			continue
		}
		if err := errors.Join(ctx.Err(), os.MkdirAll(folder, 0o700)); err != nil {
			return err
		}
		if err := copyFile(filepath.Join(j.AsideDir(), f.Name()), filepath.Join(folder, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// AddAside copies files that Copy wrote for what was set aside. Those that are there stay.
func (j *Journal) AddAside(ctx context.Context, folder string) error {
	files, err := os.ReadDir(filepath.Join(folder, filepath.Base(j.AsideDir())))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := copyFile(filepath.Join(folder, filepath.Base(j.AsideDir()), f.Name()), filepath.Join(j.AsideDir(), f.Name())); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return errors.Join(err, j.countAside())
}

func copyFile(from, to string) error {
	in, err := os.Open(from) //nolint:gosec // the journal's own folder, or a copy of it
	if err != nil {
		return err
	}
	defer in.Close()
	return copyNew(to, in)
}

// copyNew writes a file that is not there yet. The caller waits for the disk.
func copyNew(path string, content io.Reader) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the caller's folder
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}

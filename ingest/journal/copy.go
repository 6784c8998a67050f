package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

// Copy writes what waits now, and the files set aside, into an empty folder, which Open can open. Nothing is forgotten meanwhile; Append continues.
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
	if err := ignoreMissing(copyFile(j.progressPath(), filepath.Join(folder, progressFile))); err != nil {
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

// AddAside adds the files set aside that Copy wrote into a folder. Their names get a digest, because entries of the two journals can have the same numbers.
// Files that were added before stay.
func (j *Journal) AddAside(ctx context.Context, folder string) error {
	from := filepath.Join(folder, filepath.Base(j.AsideDir()))
	files, err := os.ReadDir(from)
	if err != nil {
		return ignoreMissing(err)
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if strings.HasSuffix(f.Name(), reasonSuffix) {
			continue
		}
		if err := j.addAside(filepath.Join(from, f.Name())); err != nil {
			return err
		}
	}
	return j.countAside()
}

// addAside adds a file, and the reason beside it.
func (j *Journal) addAside(path string) error {
	data, err := os.ReadFile(path) //nolint:gosec // in a copy of a journal
	if err != nil {
		return err
	}
	reason, err := os.ReadFile(path + reasonSuffix) //nolint:gosec // as above
	if ignoreMissing(err) != nil {
		return err
	}
	sum, ext := sha256.Sum256(data), filepath.Ext(path)
	to := filepath.Join(j.AsideDir(), fmt.Sprintf("%s-restored-%x%s", strings.TrimSuffix(filepath.Base(path), ext), sum[:4], ext))
	if reason != nil {
		if err := wholefile.Write(to+reasonSuffix, bytes.NewReader(reason)); err != nil {
			return err
		}
	}
	return wholefile.Write(to, bytes.NewReader(data))
}

func copyFile(from, to string) error {
	in, err := os.Open(from) //nolint:gosec // the journal's own folder, or a copy of it
	if err != nil {
		return err
	}
	defer in.Close()
	return copyNew(to, in)
}

// copyNew writes a file that does not exist yet. It leaves syncing to the caller.
func copyNew(path string, content io.Reader) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the caller's folder
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}

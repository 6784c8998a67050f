package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

// Rotate makes later entries go to a new segment, and returns the ID of the last entry so far. See Gone.
func (j *Journal) Rotate() uint64 {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.active = nil
	return j.lastID
}

// Gone reports whether the entries up to an ID that Rotate returned are off the disk. It removes segments that are delivered.
func (j *Journal) Gone(upTo uint64) bool {
	j.reading.Lock()
	defer j.reading.Unlock()
	if j.isClosed() {
		return false
	}
	j.removeForgotten()
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.segments) == 0 || j.segments[0].last > upTo
}

// EraseAside removes the lines for which gone returns true from what was set aside, and files of which nothing is left. Damaged parts of the log stay as they
// are.
func (j *Journal) EraseAside(ctx context.Context, gone func(project int64, line []byte) bool) error {
	files, err := os.ReadDir(j.AsideDir())
	if err != nil {
		return fmt.Errorf("erasing what was set aside: %w", err)
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		var project int64
		var entry uint64
		if n, _ := fmt.Sscanf(f.Name(), "project-%d-entry-%d.ndjson", &project, &entry); n != 2 || !strings.HasSuffix(f.Name(), ".ndjson") {
			continue
		}
		if err := eraseLines(filepath.Join(j.AsideDir(), f.Name()), func(line []byte) bool { return gone(project, line) }); err != nil {
			return fmt.Errorf("erasing what was set aside: %w", err)
		}
	}
	return j.countAside()
}

func eraseLines(path string, gone func([]byte) bool) error {
	data, err := os.ReadFile(path) //nolint:gosec // the journal's own file
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept []byte
	for line := range bytes.Lines(data) {
		if !gone(bytes.TrimSuffix(line, []byte("\n"))) {
			kept = append(kept, line...)
		}
	}
	switch {
	case len(kept) == len(data):
		return nil
	case len(kept) == 0:
		return errors.Join(os.Remove(path), ignoreMissing(os.Remove(path+reasonSuffix)))
	}
	return wholefile.Write(path, bytes.NewReader(kept))
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

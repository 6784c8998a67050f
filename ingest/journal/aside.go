package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

const reasonSuffix = ".reason.txt"

// AsideDir returns the folder with what was set aside.
func (j *Journal) AsideDir() string { return filepath.Join(j.dir, "aside") }

// SetAside writes the data of an entry that cannot be delivered to a file of its own, whose path it returns, and the reason to a file beside it. Setting the
// same entry aside again replaces the files. It does not forget the entry. Only EraseAside removes the files.
func (j *Journal) SetAside(ctx context.Context, e Entry, reason string) (path string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if j.isClosed() {
		return "", ErrClosed
	}
	path = filepath.Join(j.AsideDir(), fmt.Sprintf("project-%d-entry-%d.ndjson", e.Project, e.ID))
	data := e.Data
	if !bytes.HasSuffix(data, []byte("\n")) {
		data = append(bytes.Clone(data), '\n')
	}
	j.counting.Lock()
	defer j.counting.Unlock()
	_, err = os.Lstat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	about := fmt.Sprintf("%s\nproject %d, %d events, arrived %s\n", reason, e.Project, e.Events, e.Arrived.UTC().Format("2006-01-02T15:04:05.000Z"))
	if err := wholefile.Write(path+reasonSuffix, strings.NewReader(about)); err != nil {
		return "", fmt.Errorf("setting an entry aside: %w", err)
	}
	if err := wholefile.Write(path, bytes.NewReader(data)); err != nil {
		return "", fmt.Errorf("setting an entry aside: %w", err)
	}
	if time.Since(j.listed) > recountAfter {
		return path, j.listAside()
	}
	if isNew {
		j.mu.Lock()
		j.aside++
		j.mu.Unlock()
	}
	return path, nil
}

// reportDamage logs that a part of a segment is damaged, and copies it to the aside folder.
func (j *Journal) reportDamage(s *segment, offset, size int64) error {
	name := fmt.Sprintf("%s-at-%d.damaged", strings.TrimSuffix(filepath.Base(s.path), ".zst"), offset)
	path := filepath.Join(j.AsideDir(), name)
	err := wholefile.Write(path, io.NewSectionReader(s.file, offset, size))
	j.log.Error("a part of the event log is damaged; it is left out and kept aside",
		zap.String("file", s.path), zap.Int64("offset", offset), zap.Int64("size", size), zap.String("copy", path), zap.Error(err))
	return errors.Join(err, j.countAside())
}

// recountAfter is how old a list of the files set aside may be when one is added to their count: to list thousands of them each time would take long.
const recountAfter = time.Minute

// countAside updates the count for Stats. Someone may have removed files.
func (j *Journal) countAside() error {
	j.counting.Lock()
	defer j.counting.Unlock()
	return j.listAside()
}

// listAside is countAside for callers that hold counting.
func (j *Journal) listAside() error {
	files, err := os.ReadDir(j.AsideDir())
	if err != nil {
		return err
	}
	n := 0
	for _, f := range files {
		if ext := filepath.Ext(f.Name()); ext == ".ndjson" || ext == ".damaged" {
			n++
		}
	}
	j.listed = time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.aside = n
	return nil
}

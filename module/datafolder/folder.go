package datafolder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Folder is a data folder that this process uses exclusively.
type Folder struct {
	dir     string
	program string
	lock    *flock.Flock
	report  Report
	logger  *zap.Logger
}

// Open takes a folder for this process, creates it if needed, and refuses one that a newer version wrote. It logs what is about to change in a folder
// of an older version; nothing is changed yet.
func Open(dir, program string, reg registry.StoreState, logger *zap.Logger) (_ *Folder, err error) {
	report, err := Inspect(dir, program, reg)
	if err != nil { // before anything is written there
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the data folder: %w", err)
	}
	f := &Folder{dir: dir, program: program, report: report, logger: logger}
	if err := f.take(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	// Again, now that no other process writes there.
	if f.report, err = Inspect(dir, program, reg); err != nil {
		return nil, err
	}
	switch f.report.State {
	case Empty: // data of an older version can't appear later
		return f, f.write(f.next())
	case Older:
		f.announce()
	case Current:
	}
	return f, nil
}

// take locks the folder for this process. The lock is released when the process ends, however it ends.
func (f *Folder) take() error {
	path := filepath.Join(f.dir, "lock")
	f.lock = flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR))
	locked, err := f.lock.TryLock()
	if err != nil {
		return fmt.Errorf("locking the data folder: %w", err)
	}
	if locked {
		return os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o600)
	}
	by := "another process"
	if pid, err := os.ReadFile(path); err == nil && len(pid) > 0 { //nolint:gosec // the operator says where the folder is
		by = "the process " + strings.TrimSpace(string(pid))
	}
	return fmt.Errorf("the data folder %s is in use by %s: each server needs a data_dir of its own", f.dir, by)
}

func (f *Folder) announce() {
	wrote := f.report.Program
	if wrote == "" {
		wrote = "a version that left no " + FileName
	}
	fields := []zap.Field{zap.String("data_dir", f.dir), zap.String("from", wrote), zap.String("to", f.program)}
	if len(f.report.Changes) == 0 {
		f.logger.Info("an older version used the data folder; what it holds stays as it is", fields...)
		return
	}
	f.logger.Info("an older version used the data folder; it is about to be changed", append(fields, zap.Strings("changes", f.report.Changes))...)
}

// CheckEngine refuses a library with an older version of ClickHouse than last used the folder, and logs if a newer one is about to open it. It asks
// for the library's version only if the file has changed.
func (f *Folder) CheckEngine(path string, library os.FileInfo, version func() (string, error)) error {
	last := f.report.file.Engine
	if last == nil || last.Size == library.Size() && last.Modified.Equal(library.ModTime()) {
		return nil
	}
	now, err := version()
	if err != nil {
		return fmt.Errorf("asking the embedded engine's library for its version: %w", err)
	}
	if older(now, last.Version) {
		return fmt.Errorf("the tables in %s were last opened with ClickHouse %s, and the library %s is ClickHouse %s. Nothing was changed. "+
			"ClickHouse does not promise that an older version reads what a newer one wrote: "+
			"set engine_library to the newer one, or restore a backup that was made before the upgrade", f.dir, last.Version, path, now)
	}
	if now != last.Version {
		f.logger.Info("another version of ClickHouse is about to open the tables; after that an older one is refused",
			zap.String("data_dir", f.dir), zap.String("from", last.Version), zap.String("to", now))
	}
	return nil
}

// older reports whether a version of ClickHouse belongs to an earlier release (year and month) than another.
func older(version, than string) bool {
	have, want := release(version), release(than)
	return have[0] < want[0] || have[0] == want[0] && have[1] < want[1]
}

// release returns the year and month of a version; 0 for what is not a number.
func release(version string) (numbers [2]int) {
	for i, text := range strings.SplitN(version, ".", 3) {
		if i < len(numbers) {
			numbers[i], _ = strconv.Atoi(text) // 0 on an error, as documented
		}
	}
	return numbers
}

// Upgraded records that the whole folder is in this program's format. engine is nil if the folder's tables were not opened.
func (f *Folder) Upgraded(engine *Engine) error {
	next := f.next()
	if engine != nil {
		next.Engine = engine
	}
	if err := f.write(next); err != nil {
		return err
	}
	if f.report.State == Older {
		f.logger.Info("the data folder is up to date", zap.String("data_dir", f.dir), zap.String("version", f.program))
	}
	f.report.State = Current
	return nil
}

// next returns the content of version.json for an up-to-date folder. A part that was not opened now is upgraded when it is.
func (f *Folder) next() File {
	next := File{Form: fileForm, Program: f.program, Parts: make(map[string]int, len(parts)), Engine: f.report.file.Engine}
	for _, p := range parts {
		next.Parts[p.name] = p.form
	}
	return next
}

// write writes version.json if its content changes.
func (f *Folder) write(next File) error {
	had := f.report.file
	if had.Program == next.Program && maps.Equal(had.Parts, next.Parts) && had.Engine.equal(next.Engine) {
		return nil
	}
	text, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		panic("BUG: a version that is not JSON: " + err.Error())
	}
	if err := wholefile.Write(filepath.Join(f.dir, FileName), bytes.NewReader(append(text, '\n'))); err != nil {
		return fmt.Errorf("writing the version of the data folder: %w", err)
	}
	f.report.file = next
	return nil
}

func (e *Engine) equal(other *Engine) bool {
	if e == nil || other == nil {
		return e == other
	}
	return e.Version == other.Version && e.Size == other.Size && e.Modified.Equal(other.Modified)
}

// Close releases the folder.
func (f *Folder) Close() error {
	if err := f.lock.Close(); err != nil {
		return fmt.Errorf("unlocking the data folder: %w", err)
	}
	return nil
}

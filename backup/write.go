package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

// Writer writes a new backup. Finish or Abort ends it.
type Writer struct {
	folder  *Folder
	name    string
	files   []File
	written []string        // contents that were not there before
	synced  map[string]bool // folders to sync
	bytes   int64
	count   int
}

// Begin begins a new backup of the data at a time. The caller holds the lock for writing. Begin removes what an interrupted backup left.
func (f *Folder) Begin(at time.Time) (*Writer, error) {
	if err := f.clean(); err != nil {
		return nil, fmt.Errorf("removing what a broken-off backup left: %w", err)
	}
	if err := f.root.Mkdir(unfinished, 0o700); err != nil {
		return nil, fmt.Errorf("beginning a backup: %w", err)
	}
	name := at.UTC().Format("20060102T150405Z")
	for n := 2; ; n++ {
		if _, err := f.root.Lstat(name + manifestSuffix); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("beginning a backup: %w", err)
		}
		name = fmt.Sprintf("%s-%d", at.UTC().Format("20060102T150405Z"), n)
	}
	return &Writer{folder: f, name: name, synced: map[string]bool{}}, nil
}

// Name returns the name of the backup.
func (w *Writer) Name() string { return w.name }

// Stage creates an empty folder for files that are to be added. It is removed when the backup ends.
func (w *Writer) Stage(name string) (path string, err error) {
	if err := w.folder.root.Mkdir(unfinished+"/"+name, 0o700); err != nil {
		return "", fmt.Errorf("making a folder for the backup: %w", err)
	}
	return filepath.Join(w.folder.path, unfinished, name), nil
}

// Keep adds a file of an earlier backup in the folder. It returns false if the file's content is missing or has another size.
func (w *Writer) Keep(file File) bool {
	if w.folder.Stat(file) != nil {
		return false
	}
	w.files = append(w.files, file)
	return true
}

// Add adds a copy of the file from, which the backup names path.
func (w *Writer) Add(ctx context.Context, path, from string) (err error) {
	in, err := os.Open(from) //nolint:gosec // the server's own files
	if err != nil {
		return fmt.Errorf("reading what is to be in the backup: %w", err)
	}
	defer in.Close()
	file := File{Path: path}
	temp := fmt.Sprintf("%s/%d", unfinished, w.count)
	w.count++
	out, err := w.folder.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	hash := sha256.New()
	file.Size, err = io.Copy(io.MultiWriter(out, hash), &untilDone{ctx, in})
	file.SHA256 = hex.EncodeToString(hash.Sum(nil))
	there := err == nil && w.folder.copyTo(ctx, file, io.Discard) == nil // a damaged content is replaced
	if err == nil && !there {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("writing the backup: %w", err)
	}
	if err := file.check(); err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	if there {
		err = w.folder.root.Remove(temp)
	} else {
		err = w.place(temp, file)
	}
	if err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	w.files = append(w.files, file)
	return nil
}

// place moves a file to the contents.
func (w *Writer) place(temp string, file File) error {
	into := objects + "/" + file.SHA256[:2]
	if err := w.folder.root.Mkdir(into, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	_, before := w.folder.root.Lstat(objectPath(file.SHA256))
	if err := w.folder.root.Rename(temp, objectPath(file.SHA256)); err != nil {
		return err
	}
	if before != nil {
		w.written = append(w.written, objectPath(file.SHA256))
	}
	w.synced[into] = true
	w.bytes += file.Size
	return nil
}

// Finish completes the manifest and writes it. When it returns nil, the backup is on disk.
func (w *Writer) Finish(m *Manifest) error {
	m.Format, m.Name, m.Files, m.NewBytes = Format, w.name, w.files, w.bytes
	text, err := m.encode()
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	if _, err := ParseManifest(text); err != nil {
		return fmt.Errorf("BUG: writing the manifest: %w", err)
	}
	w.synced[objects] = true
	for folder := range w.synced {
		if err := wholefile.SyncFolder(filepath.Join(w.folder.path, folder)); err != nil {
			return fmt.Errorf("writing the backup: %w", err)
		}
	}
	if err := w.writeManifest(text); err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	return w.folder.root.RemoveAll(unfinished)
}

func (w *Writer) writeManifest(text []byte) error {
	const temp = unfinished + "/manifest"
	out, err := w.folder.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	if err := w.folder.root.Rename(temp, w.name+manifestSuffix); err != nil {
		return err
	}
	return wholefile.SyncFolder(w.folder.path)
}

// Abort removes what was written.
func (w *Writer) Abort() error {
	errs := []error{w.folder.root.RemoveAll(unfinished)}
	if err := w.folder.root.Remove(w.name + manifestSuffix); !errors.Is(err, fs.ErrNotExist) { // after Finish, or a part of it
		errs = append(errs, err)
	}
	for _, path := range w.written {
		errs = append(errs, w.folder.root.Remove(path))
	}
	return errors.Join(errs...)
}

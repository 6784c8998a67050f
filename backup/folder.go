package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gofrs/flock"
)

// Names in the folder.
const (
	objects        = "objects"
	unfinished     = "unfinished"
	lockFile       = "lock"
	manifestSuffix = ".json"
)

var (
	// ErrBusy is returned while another process, or another call, makes or restores a backup in the folder.
	ErrBusy = errors.New("another backup is being made, or restored, in this folder")
	// ErrForeign is returned for a folder with files that are not those of backups.
	ErrForeign = errors.New("the folder has files that are not those of backups: use an empty one, or one that does not exist yet")
	// ErrNone is returned for a folder without backups.
	ErrNone = errors.New("there are no backups in this folder")
)

// Folder is a folder of backups. No path leads out of it, not even through a symbolic link.
type Folder struct {
	path string
	root *os.Root
}

// Open opens a folder that has backups.
func Open(path string) (*Folder, error) {
	root, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, ErrNone)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the folder of backups: %w", err)
	}
	if _, err := root.Lstat(objects); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, ErrNone), root.Close())
	}
	return &Folder{path, root}, nil
}

// Create opens a folder for a new backup, and creates it if it is missing.
func Create(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of backups: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of backups: %w", err)
	}
	f := &Folder{path, root}
	if err := f.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), root.Close())
	}
	return f, nil
}

// begin creates the folder of contents. It returns ErrForeign if the folder has other files than those of backups.
func (f *Folder) begin() error {
	info, err := f.root.Lstat(objects)
	switch {
	case err == nil && !info.IsDir():
		return ErrForeign
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return err
	}
	names, err := f.names(".")
	if err != nil {
		return err
	}
	if len(slices.DeleteFunc(names, func(name string) bool { return name == "lost+found" })) > 0 {
		return ErrForeign
	}
	return f.root.Mkdir(objects, 0o700)
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Path returns the path of the folder.
func (f *Folder) Path() string { return f.path }

// names returns the names in a folder, in order.
func (f *Folder) names(folder string) ([]string, error) {
	d, err := f.root.Open(folder)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// Lock keeps others from changing the folder until release is called; with write, also from reading backups in it.
func (f *Folder) Lock(write bool) (release func(), err error) {
	path := filepath.Join(f.path, lockFile)
	if info, err := f.root.Lstat(lockFile); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	lock := flock.New(path, flock.SetPermissions(0o600))
	try := lock.TryRLock
	if write {
		try = lock.TryLock
	}
	switch ok, err := try(); {
	case !write && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)): // backups on a read-only disk
		return func() { _ = lock.Close() }, nil
	case err != nil:
		return nil, errors.Join(fmt.Errorf("locking the folder of backups: %w", err), lock.Close())
	case !ok:
		return nil, errors.Join(ErrBusy, lock.Close())
	}
	return func() { _ = lock.Close() }, nil
}

// List returns the names of the backups, oldest first. Their manifests can be large, so callers read one at a time.
func (f *Folder) List() ([]string, error) {
	files, err := f.names(".")
	if err != nil {
		return nil, fmt.Errorf("listing the backups: %w", err)
	}
	var names []string
	for _, file := range files {
		if name, ok := strings.CutSuffix(file, manifestSuffix); ok && CheckName(name) == nil {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, compareNames)
	return names, nil
}

// compareNames orders names by time, and names of the same second by number.
func compareNames(a, b string) int {
	timeA, numberA, _ := strings.Cut(a, "-")
	timeB, numberB, _ := strings.Cut(b, "-")
	return cmp.Or(cmp.Compare(timeA, timeB), cmp.Compare(len(numberA), len(numberB)), cmp.Compare(numberA, numberB))
}

// Read reads the manifest of a backup.
func (f *Folder) Read(name string) (*Manifest, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	file, err := f.regular(name + manifestSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no backup %s", name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the backup %s: %w", name, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err == nil && len(text) > maxManifest {
		err = errors.New("its manifest is too large")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the backup %s: %w", name, err)
	}
	m, err := ParseManifest(text)
	if err == nil && m.Name != name {
		err = fmt.Errorf("its manifest is that of the backup %s", m.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("the backup %s can't be used: %w", name, err)
	}
	return m, nil
}

// regular opens a regular file. It follows no link.
func (f *Folder) regular(path string) (*os.File, error) {
	info, err := f.root.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return f.root.Open(path)
}

// objectPath returns the path of the content with a checksum.
func objectPath(sum string) string { return objects + "/" + sum[:2] + "/" + sum }

// DamageError says what is wrong with a file of a backup.
type DamageError struct {
	File   string // as the manifest names it
	Stored string // its path in the folder
	Wrong  string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("the backup is damaged: the file %s (%s) %s", e.File, e.Stored, e.Wrong)
}

// Stat checks that a file exists and has its size. The error is a *DamageError.
func (f *Folder) Stat(file File) error {
	damage := &DamageError{File: file.Path, Stored: objectPath(file.SHA256)}
	info, err := f.root.Lstat(damage.Stored)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		damage.Wrong = "is missing"
	case err != nil:
		damage.Wrong = "can't be read: " + err.Error()
	case !info.Mode().IsRegular():
		damage.Wrong = "is not a regular file"
	case info.Size() != file.Size:
		damage.Wrong = fmt.Sprintf("has %d bytes instead of %d", info.Size(), file.Size)
	default:
		return nil
	}
	return damage
}

// Check reads all files of a backup, and returns a *DamageError for the first one that is not as it was written. It calls read with the size of each
// file that it has read.
func (f *Folder) Check(ctx context.Context, m *Manifest, read func(bytes int64)) error {
	checked := make(map[string]bool, len(m.Files))
	for _, file := range m.Files {
		if err := f.Stat(file); err != nil {
			return err
		}
		if !checked[file.SHA256] {
			if err := f.copyTo(ctx, file, io.Discard); err != nil {
				return err
			}
			checked[file.SHA256] = true
		}
		read(file.Size)
	}
	return nil
}

// copyTo copies a file, and returns a *DamageError if it is not as it was written.
func (f *Folder) copyTo(ctx context.Context, file File, to io.Writer) error {
	damage := &DamageError{File: file.Path, Stored: objectPath(file.SHA256)}
	in, err := f.regular(damage.Stored)
	if err != nil {
		damage.Wrong = "can't be read: " + err.Error()
		return damage
	}
	defer in.Close()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(hash, to), &untilDone{ctx, in})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("reading the file %s of the backup: %w", file.Path, err)
	case n != file.Size:
		damage.Wrong = fmt.Sprintf("has %d bytes instead of %d", n, file.Size)
	case hex.EncodeToString(hash.Sum(nil)) != file.SHA256:
		damage.Wrong = "has another checksum: its content was changed"
	default:
		return nil
	}
	return damage
}

// untilDone reads until a context ends.
type untilDone struct {
	ctx context.Context // io.Reader has no place for it
	in  io.Reader
}

func (r *untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(p)
}

// Unpack writes a file of a backup to a path that does not exist yet, and creates the folders above it.
func (f *Folder) Unpack(ctx context.Context, file File, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("unpacking the backup: %w", err)
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the caller's folder
	if err != nil {
		return fmt.Errorf("unpacking the backup: %w", err)
	}
	err = f.copyTo(ctx, file, out)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// UnpackBelow writes the files below a folder of the backup into a folder.
func (f *Folder) UnpackBelow(ctx context.Context, m *Manifest, folder, into string) error {
	for _, file := range m.Below(folder) {
		if err := f.Unpack(ctx, file, filepath.Join(into, filepath.FromSlash(strings.TrimPrefix(file.Path, folder+"/")))); err != nil {
			return err
		}
	}
	return nil
}

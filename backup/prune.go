package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

// Prune removes the oldest backups, so that at most keep are left, and the contents that no backup uses. The caller holds the lock for writing. The
// backup made, which the caller has just written, stays even if others have later names because the clock was wrong. Backups that can't be read do
// not count, and stay; while there are any, no contents are removed, because they may be theirs.
func (f *Folder) Prune(keep int, made string) (removed []string, err error) {
	names, err := f.List()
	if err != nil {
		return nil, err
	}
	if at := slices.Index(names, made); at >= 0 {
		names = append(slices.Delete(names, at, at+1), made)
	}
	wanted := contents{sums: map[string]bool{}}
	var excess []string
	for _, name := range slices.Backward(names) {
		m, err := f.Read(name)
		switch {
		case err != nil:
			wanted.unknown = true
		case keep > 0 || name == made:
			keep--
			wanted.add(m)
		default:
			excess = append(excess, name)
		}
	}
	for _, name := range slices.Backward(excess) {
		if err := f.root.Remove(name + manifestSuffix); err != nil {
			return removed, fmt.Errorf("removing the backup %s: %w", name, err)
		}
		removed = append(removed, name)
	}
	if len(removed) == 0 {
		return nil, nil
	}
	if err := wholefile.SyncFolder(f.path); err != nil { // a manifest must not come back without its contents
		return removed, fmt.Errorf("removing backups: %w", err)
	}
	if err := f.sweep(wanted); err != nil {
		return removed, fmt.Errorf("removing what no backup has: %w", err)
	}
	return removed, nil
}

// clean removes what an interrupted backup left.
func (f *Folder) clean() error {
	if err := f.root.RemoveAll(unfinished); err != nil {
		return err
	}
	names, err := f.List()
	if err != nil {
		return err
	}
	wanted := contents{sums: map[string]bool{}}
	for _, name := range names {
		m, err := f.Read(name)
		if err != nil { // other contents may be its own
			return nil //nolint:nilerr // the backup is listed as damaged
		}
		wanted.add(m)
	}
	return f.sweep(wanted)
}

// contents are those of some backups.
type contents struct {
	sums    map[string]bool
	unknown bool // there are backups that can't be read, and any contents may be theirs
}

// add adds the contents of a backup.
func (c contents) add(m *Manifest) {
	for _, file := range m.Files {
		c.sums[file.SHA256] = true
	}
}

// sweep removes all contents but the wanted ones.
func (f *Folder) sweep(wanted contents) error {
	if wanted.unknown {
		return nil
	}
	folders, err := f.names(objects)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		names, err := f.names(objects + "/" + folder)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !wanted.sums[name] && isSum(name) && strings.HasPrefix(name, folder) {
				if err := f.root.Remove(objectPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
	}
	return wholefile.SyncFolder(filepath.Join(f.path, objects))
}

func isSum(name string) bool {
	return (&File{Path: "x", SHA256: name}).check() == nil
}

package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

// Prune removes the oldest backups, so that at most keep are left, and the contents that no backup uses. The caller holds the lock for writing. The
// backup made, which the caller has just written, stays even if others have later names because the clock was wrong. Backups that can't be read do
// not count, and stay; while there are any, no contents are removed, because they may be theirs.
func (f *Folder) Prune(keep int, made string) (removed []string, err error) {
	list, err := f.List()
	if err != nil {
		return nil, err
	}
	var whole, left []Found
	for _, found := range list {
		if found.Err == nil {
			whole = append(whole, found)
		}
	}
	excess := len(whole) - keep
	for _, old := range whole {
		if excess <= 0 || old.Name == made {
			left = append(left, old)
			continue
		}
		if err := f.root.Remove(old.Name + manifestSuffix); err != nil {
			return removed, fmt.Errorf("removing the backup %s: %w", old.Name, err)
		}
		removed = append(removed, old.Name)
		excess--
	}
	if len(removed) == 0 {
		return nil, nil
	}
	if err := wholefile.SyncFolder(f.path); err != nil { // a manifest must not come back without its contents
		return removed, fmt.Errorf("removing backups: %w", err)
	}
	if err := f.sweep(left, len(whole) < len(list)); err != nil {
		return removed, fmt.Errorf("removing what no backup has: %w", err)
	}
	return removed, nil
}

// clean removes what an interrupted backup left.
func (f *Folder) clean() error {
	if err := f.root.RemoveAll(unfinished); err != nil {
		return err
	}
	list, err := f.List()
	if err != nil {
		return err
	}
	damaged := false
	for _, found := range list {
		damaged = damaged || found.Err != nil
	}
	return f.sweep(list, damaged)
}

// sweep removes the contents that no backup in list uses. If there are others, whose contents are not known, it removes none.
func (f *Folder) sweep(list []Found, others bool) error {
	if others {
		return nil
	}
	wanted := map[string]bool{}
	for _, found := range list {
		for _, file := range found.Manifest.Files {
			wanted[file.SHA256] = true
		}
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
			if !wanted[name] && isSum(name) && strings.HasPrefix(name, folder) {
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

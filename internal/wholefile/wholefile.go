// Package wholefile writes files so that they exist completely or not at all, even after a power cut.
package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// Suffix ends the names of files that are not complete yet. They only remain after a crash, and are overwritten.
const Suffix = ".tmp"

// Write writes a file, and replaces the one that exists. When it returns nil, the file is on disk.
func Write(path string, content io.Reader) error {
	temp := path + Suffix
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // the caller's name
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder makes the names in a folder survive a crash. Windows does so by itself.
func SyncFolder(folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(folder) //nolint:gosec // the caller's name
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

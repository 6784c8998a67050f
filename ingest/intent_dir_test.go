package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

// IntentDir keeps intents as files of a folder, for tests.
type IntentDir string

func (d IntentDir) file(project int64) string {
	return filepath.Join(string(d), strconv.FormatInt(project, 10)+".batch")
}

// Save writes the file of a project, or removes it.
func (d IntentDir) Save(_ context.Context, project int64, batch []byte) error {
	if len(batch) > 0 {
		return os.WriteFile(d.file(project), batch, 0o600)
	}
	if err := os.Remove(d.file(project)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Load reads the file of a project.
func (d IntentDir) Load(_ context.Context, project int64) ([]byte, error) {
	batch, err := os.ReadFile(d.file(project))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return batch, err
}

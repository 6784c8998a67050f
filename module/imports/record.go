package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

// save writes the record of an import.
func (s *Service) save(one *Import) error {
	text, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("BUG: encoding an import: %w", err)
	}
	return wholefile.Write(s.file(one.Project, one.ID, recordFile), bytes.NewReader(text))
}

// Get returns an import of a project, or ErrNotFound.
func (s *Service) Get(project int64, id string) (*Import, error) {
	if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
		return nil, ErrNotFound
	}
	return read(s.file(project, id, recordFile))
}

func read(name string) (*Import, error) {
	text, err := os.ReadFile(name) //nolint:gosec // in the folder of imports
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading an import: %w", err)
	}
	one := new(Import)
	if err := json.Unmarshal(text, one); err != nil {
		return nil, fmt.Errorf("reading an import: %w", err)
	}
	if one.ID+recordFile != filepath.Base(name) || strconv.FormatInt(one.Project, 10) != filepath.Base(filepath.Dir(name)) {
		return nil, errors.New("reading an import: the file is of another one")
	}
	return one, nil
}

// List returns the imports of a project, newest first.
func (s *Service) List(project int64) ([]*Import, error) {
	all, _, err := s.listed(s.folder(project), recordFile)
	return all, err
}

// listed returns the imports in a folder that have a file of a kind, newest first. It leaves out those that can't be read, and logs each once; then whole is
// false.
func (s *Service) listed(folder, kind string) (all []*Import, whole bool, err error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("listing imports: %w", err)
	}
	whole = true
	for _, e := range entries {
		id, found := strings.CutSuffix(e.Name(), kind)
		if !found {
			continue
		}
		name := filepath.Join(folder, id+recordFile)
		one, err := read(name)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			whole = false
			if _, said := s.damaged.LoadOrStore(name, true); !said {
				s.config.Logger.Error("an import is left out: its record is damaged", zap.String("file", name), zap.Error(err))
			}
			continue
		}
		all = append(all, one)
	}
	Sort(all)
	return all, whole, nil
}

// Sort sorts imports, newest first.
func Sort(all []*Import) {
	slices.SortFunc(all, func(a, b *Import) int { return b.CreatedAt.Compare(a.CreatedAt) })
}

// queue holds the imports of a project that have not ended, and when its folder had last been changed before they were read; zero if it may have changed since.
type queue struct {
	changed time.Time
	read    time.Time
	imports []*Import
}

// rereadAfter is after how long a folder is read again in any case: not all file systems of networks note when one was changed.
const rereadAfter = time.Minute

// settled is how old a change of a folder has to be so that no other can have the same time: the clocks of some file systems are coarse.
const settled = 3 * time.Second

// queued returns the imports of all projects that have not ended, newest first. Only these have data, so it reads no records of others, and only folders that
// have changed since they were last read: each file of an import is made under another name, or removed. The imports are the caller's own.
func (s *Service) queued() (all []*Import, err error) {
	s.queuing.Lock()
	defer s.queuing.Unlock()
	queues := make(map[string]queue, len(s.queues))
	err = s.eachProject(func(folder string, entry os.DirEntry) error {
		now := time.Now()
		info, err := entry.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing imports: %w", err)
		}
		q, known := s.queues[folder]
		if !known || q.changed.IsZero() || !q.changed.Equal(info.ModTime()) || now.Sub(q.read) > rereadAfter {
			some, whole, err := s.listed(folder, dataFile)
			if err != nil {
				return err
			}
			q = queue{read: now, imports: slices.DeleteFunc(some, (*Import).ended)}
			if whole && now.Sub(info.ModTime()) > settled {
				q.changed = info.ModTime()
			}
		}
		queues[folder] = q
		for _, one := range q.imports {
			own := *one
			all = append(all, &own)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.queues = queues
	Sort(all)
	return all, nil
}

// records returns the imports of all projects that have a record, newest first.
func (s *Service) records() (all []*Import, err error) {
	err = s.eachProject(func(folder string, _ os.DirEntry) error {
		some, _, err := s.listed(folder, recordFile)
		all = append(all, some...)
		return err
	})
	Sort(all)
	return all, err
}

// eachProject calls do for the folder of each project, until it fails.
func (s *Service) eachProject(do func(folder string, entry os.DirEntry) error) error {
	folders, err := os.ReadDir(s.config.Folder)
	if err != nil {
		return fmt.Errorf("listing imports: %w", err)
	}
	for _, f := range folders {
		if _, err := strconv.ParseInt(f.Name(), 10, 64); err != nil || !f.IsDir() {
			continue
		}
		if err := do(filepath.Join(s.config.Folder, f.Name()), f); err != nil {
			return err
		}
	}
	return nil
}

// Delete cancels an import that has not ended, and forgets one that has.
func (s *Service) Delete(project int64, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, err := s.Get(project, id)
	if err != nil {
		return err
	}
	if one.ended() {
		return errors.Join(remove(s.file(project, id, dataFile)), remove(s.file(project, id, recordFile)))
	}
	if cancel := s.running[id]; cancel != nil {
		if err := wholefile.Write(s.file(project, id, cancelledFile), strings.NewReader("")); err != nil { // the server may end before the import has
			return diskError(err)
		}
		cancel(errCancelled)
		return nil // the goroutine that runs it records that it is canceled
	}
	return s.finish(one, Cancelled, "")
}

// finish records how an import ended, and then removes its data. If it can't be recorded, the data stays, so that the import comes again.
func (s *Service) finish(one *Import, status Status, reason string) error {
	now := time.Now().UTC()
	one.Status, one.FinishedAt, one.Error = status, &now, reason
	if err := s.save(one); err != nil {
		return fmt.Errorf("noting how an import ended: %w", err)
	}
	return errors.Join(remove(s.file(one.Project, one.ID, dataFile)), remove(s.file(one.Project, one.ID, cancelledFile)))
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing a file of an import: %w", err)
	}
	return nil
}

package imports

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/pause"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

// Forget removes everything about the imports of a deleted project: waiting imports, reports and files. It stops a running import and waits for it.
func (s *Service) Forget(ctx context.Context, project int64) error {
	for {
		if gone, err := s.forget(project); gone || err != nil {
			return err
		}
		if err := pause.For(ctx, s.config.Pause/10); err != nil {
			return err
		}
	}
}

// forget is Forget without waiting: it tells a running import to stop, and then reports false.
func (s *Service) forget(project int64) (gone bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.List(project)
	if err != nil {
		return false, err
	}
	for _, one := range all {
		if cancel := s.running[one.ID]; cancel != nil {
			cancel(errCancelled)
			continue
		}
		if err := errors.Join(remove(s.file(project, one.ID, dataFile)), remove(s.file(project, one.ID, recordFile))); err != nil {
			return false, err
		}
	}
	if s.busy[project] {
		return false, nil
	}
	if err := os.RemoveAll(s.folder(project)); err != nil {
		return false, fmt.Errorf("removing the imports of project %d: %w", project, err)
	}
	return true, nil
}

// forgetGone forgets deleted projects, whichever server deleted them.
func (s *Service) forgetGone() {
	if s.config.Gone == nil {
		return
	}
	folders, err := os.ReadDir(s.config.Folder)
	if err != nil {
		return // looking for work logs it
	}
	for _, f := range folders {
		project, err := strconv.ParseInt(f.Name(), 10, 64)
		if err != nil || !s.config.Gone(project) {
			continue
		}
		if _, err := s.forget(project); err != nil {
			s.config.Logger.Error("forgetting the imports of a deleted project", zap.Int64("project", project), zap.Error(err))
		}
	}
}

// forgetOld forgets imports that ended long ago, and ends those whose data is gone.
func (s *Service) forgetOld() {
	all, err := s.records()
	if err != nil {
		return // looking for work logs it
	}
	kept := map[int64]int{}
	for _, one := range all {
		var err error
		if !one.ended() {
			err = s.endLost(one)
		} else if kept[one.Project]++; kept[one.Project] > maxKept || one.FinishedAt != nil && time.Since(*one.FinishedAt) > keptFor {
			err = s.Delete(one.Project, one.ID)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			s.config.Logger.Error("forgetting an import", zap.String("import", one.ID), zap.Error(err))
		}
	}
}

// endLost ends an import that has not ended if its data is gone, so that it can't begin.
func (s *Service) endLost(one *Import) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[one.ID] != nil {
		return nil
	}
	now, err := s.Get(one.Project, one.ID)
	if err != nil || now.ended() {
		return err
	}
	if _, err := os.Stat(s.file(one.Project, one.ID, dataFile)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return s.finish(now, Failed, "The server has lost the file. Import it again.")
}

// EraseReasons erases from the records of a project's ended imports the texts that may quote the file: why lines were bad and why the import failed.
// The numbers stay.
func (s *Service) EraseReasons(project int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.List(project)
	if err != nil {
		return err
	}
	for _, one := range all {
		if !one.ended() || one.Error == "" && (one.Report == nil || len(one.Report.BadLines) == 0) {
			continue
		}
		if one.Error != "" {
			one.Error = "The reason was erased, because it may have had data of a person that was deleted."
		}
		if one.Report != nil {
			one.Report.BadLines = []adminapi.BadLine{}
		}
		if err := s.save(one); err != nil {
			return fmt.Errorf("erasing the reasons in an import: %w", err)
		}
	}
	return nil
}

package imports

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

// Forget removes all that there is of a project that was deleted: imports that wait, reports and files. It stops an import at work, and
// waits for that.
func (s *Service) Forget(ctx context.Context, project int64) error {
	for {
		if gone, err := s.forget(project); gone || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(s.config.Pause / 10):
		}
	}
}

// forget does it, unless an import is at work: that one is told to stop.
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

// forgetGone forgets projects that were deleted, whichever server did it.
func (s *Service) forgetGone() {
	if s.config.Gone == nil {
		return
	}
	folders, err := os.ReadDir(s.config.Folder)
	if err != nil {
		return // who looks for work says so
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

// EraseReasons removes from what is known of the imports of a project that have ended the texts which may quote the file: why lines were
// bad, and why the import broke off. The numbers stay.
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

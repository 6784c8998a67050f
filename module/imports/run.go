package imports

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/pause"
	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

var (
	errCancelled = errors.New("the import was cancelled")
	errTooLong   = errors.New("the import took too long")
	errNotBegun  = errors.New("noting that an import begins")
)

// take waits for the lock. It reports false if ctx ends first. Where the lock can't be taken for another reason than that another process holds it, it
// tries again after a pause.
func (s *Service) take(ctx context.Context, lock *flock.Flock) bool {
	for told := false; ; told = true {
		ok, err := lock.TryLockContext(ctx, s.config.Pause)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil && ok:
			return true
		case !told:
			s.config.Logger.Warn("the lock for imports can't be taken; trying again", zap.Error(err))
		}
		if pause.For(ctx, s.config.Pause) != nil {
			return false
		}
	}
}

// work imports files, oldest first and one at a time per project, while it holds the lock of the folder.
func (s *Service) work(ctx context.Context) {
	defer close(s.done)
	lock := flock.New(filepath.Join(s.config.Folder, "lock"))
	if !s.take(ctx, lock) {
		return
	}
	defer func() { _ = lock.Unlock() }()
	s.removeOld("*/*" + wholefile.Suffix) // once, as nothing is known about those being written
	var working sync.WaitGroup
	defer working.Wait()
	for cleaned := (time.Time{}); ctx.Err() == nil; {
		if time.Since(cleaned) > cleanEvery*s.config.Pause {
			s.clean()
			s.forgetOld()
			cleaned = time.Now()
		}
		s.forgetGone()
		if next := s.next(); next != nil {
			working.Go(func() { s.run(ctx, next); s.leave(next.Project) })
			continue
		}
		select {
		case <-s.wake:
		case <-time.After(s.config.Pause):
		case <-ctx.Done():
		}
	}
}

// inUse has the names of files that this process receives, or that its imports read, of all services: one can still be receiving a file while the next
// one works in the folder.
var inUse sync.Map

// use keeps services from removing files until done is called.
func use(names ...string) (done func()) {
	for _, name := range names {
		inUse.Store(name, true)
	}
	return func() {
		for _, name := range names {
			inUse.Delete(name)
		}
	}
}

// Spool creates a file in the folder of a service for what an import keeps of its input. The file counts towards the room for uploads. If it still
// exists once done was called, the service removes it.
func Spool(folder string) (file *os.File, done func(), err error) {
	if file, err = os.CreateTemp(folder, spoolPattern); err != nil {
		return nil, nil, err
	}
	return file, use(file.Name()), nil
}

// clean removes the remains of uploads and imports that were interrupted when a process ended.
func (s *Service) clean() {
	s.removeOld("*/*" + partialFile)
	s.removeOld(spoolPattern)
	data, err := filepath.Glob(filepath.Join(s.config.Folder, "*/*"+dataFile))
	if err != nil {
		return
	}
	for _, name := range data {
		one, err := read(strings.TrimSuffix(name, dataFile) + recordFile)
		if errors.Is(err, ErrNotFound) && abandoned(name) || err == nil && one.ended() {
			_ = os.Remove(name)
		}
	}
}

// removeOld removes the abandoned files that match a pattern.
func (s *Service) removeOld(pattern string) {
	names, err := filepath.Glob(filepath.Join(s.config.Folder, pattern))
	if err != nil {
		return
	}
	for _, name := range names {
		if abandoned(name) {
			_ = os.Remove(name)
		}
	}
}

// abandoned reports whether a file is no longer being written or read.
func abandoned(name string) bool {
	if _, used := inUse.Load(name); used {
		return false
	}
	info, err := os.Stat(name)
	return err == nil && time.Since(info.ModTime()) > time.Minute
}

// next returns the import that has waited for longest, of a project with none running; nil if there is none.
func (s *Service) next() *Import {
	queued, err := s.queued()
	if err != nil {
		s.config.Logger.Error("looking for imports", zap.Error(err))
		return nil
	}
	var next *Import
	for _, one := range queued {
		if !s.isBusy(one.Project) {
			next = one
		}
	}
	if next == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.busy) >= atOnce {
		return nil
	}
	s.busy[next.Project] = true
	return next
}

func (s *Service) isBusy(project int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy[project]
}

// leave records that a project has no running import any more.
func (s *Service) leave(project int64) {
	s.mu.Lock()
	delete(s.busy, project)
	s.mu.Unlock()
	s.look()
}

// run imports a file. If the service is closed meanwhile, or the record of the import can't be written, the import continues later.
func (s *Service) run(ctx context.Context, one *Import) {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running, stop := context.WithTimeoutCause(running, s.config.MaxTime, errTooLong)
	defer stop()
	begun, err := s.begin(one, cancel)
	if begun {
		defer func() {
			s.mu.Lock()
			delete(s.running, one.ID)
			s.mu.Unlock()
		}()
		err = s.note(ctx, running, one, s.try(running, one))
	}
	for err != nil {
		s.config.Logger.Error("noting the state of an import", zap.String("import", one.ID), zap.Error(err))
		if pause.For(ctx, againAfter*s.config.Pause) != nil || !one.ended() {
			return // the same import comes again
		}
		err = s.finish(one, one.Status, one.Error)
	}
}

// note records how an attempt to import a file ended.
func (s *Service) note(ctx, running context.Context, one *Import, err error) error {
	switch {
	case err == nil:
		return s.finish(one, Completed, "")
	case ctx.Err() == nil, errors.Is(context.Cause(running), errCancelled):
		return s.ended(running, one, err)
	}
	one.Status = Waiting
	one.Starts--
	return s.save(one)
}

// begin marks an import as running, unless it was canceled before or is given up.
func (s *Service) begin(one *Import, cancel context.CancelCauseFunc) (begun bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, err := s.Get(one.Project, one.ID); err != nil || now.ended() {
		return false, nil
	}
	if _, err := os.Stat(s.file(one.Project, one.ID, cancelledFile)); err == nil {
		return false, s.finish(one, Cancelled, "")
	}
	if one.Starts >= maxStarts {
		return false, s.finish(one, Failed, fmt.Sprintf("The server stopped %d times while it was importing the file.", one.Starts))
	}
	now := time.Now().UTC()
	one.Status, one.StartedAt = Running, &now
	one.Starts++
	s.running[one.ID] = cancel
	return true, nil
}

// ended records why an import failed. One that could not even begin goes on waiting.
func (s *Service) ended(running context.Context, one *Import, err error) error {
	if errors.Is(context.Cause(running), errCancelled) {
		return s.finish(one, Cancelled, "")
	}
	if errors.Is(context.Cause(running), errTooLong) {
		return s.finish(one, Failed, fmt.Sprintf("The import took longer than %s. Split the file into smaller ones: what was already imported is skipped.", s.config.MaxTime))
	}
	if errors.Is(err, errNotBegun) {
		return err
	}
	if failure, ok := errors.AsType[*FileError](err); ok {
		return s.finish(one, Failed, failure.Error())
	}
	s.config.Logger.Error("an import failed", zap.Int64("project", one.Project), zap.String("import", one.ID), zap.Error(err))
	return s.finish(one, Failed, "The server could not write all of the file. Import it again: what was already imported is skipped.")
}

// try imports a file, repeatedly if need be.
func (s *Service) try(ctx context.Context, one *Import) error {
	for tries := 1; ; tries++ {
		err := s.once(ctx, one)
		if err == nil || tries == maxTries || s.config.Transient == nil || !s.config.Transient(err) || ctx.Err() != nil {
			return err
		}
		if err := pause.For(ctx, time.Duration(tries*tries)*5*s.config.Pause); err != nil {
			return err
		}
	}
}

// errPanic is a defect in the server.
var errPanic = errors.New("BUG: the import panicked")

func (s *Service) once(ctx context.Context, one *Import) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.config.Logger.Error("an import panicked", zap.String("import", one.ID), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	if err := s.save(one); err != nil {
		return fmt.Errorf("%w: %w", errNotBegun, err)
	}
	file, err := os.Open(s.file(one.Project, one.ID, dataFile))
	if err != nil {
		return fmt.Errorf("opening an import: %w", err)
	}
	defer file.Close()
	var last time.Time
	report, err := s.config.Run(ctx, one.Request, file, func(line, events int) {
		one.Line, one.Events = line, events
		if time.Since(last) > time.Second/2 {
			last = time.Now()
			_ = s.save(one) // losing progress does no harm
		}
	})
	if report != nil {
		one.Report = report
		one.Events = report.Events
	}
	return err
}

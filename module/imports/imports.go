// Package imports imports files that are uploaded over HTTP. It keeps them on disk until they are imported, one after the other within a project, and
// remembers the outcomes.
package imports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

// Status is the state of an import.
type Status string

// The states of an import.
const (
	Waiting   Status = "waiting"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Request says what an import is to do.
type Request struct {
	Project    int64             `json:"project"`
	Name       string            `json:"filename"` // of the file; may be empty
	Format     string            `json:"format"`   // empty to detect it from the file
	Map        map[string]string `json:"map"`
	DryRun     bool              `json:"dry_run"`
	LearnTypes bool              `json:"learn_types"`
	CreatedBy  string            `json:"created_by"` // the id of a key
}

// Import is an import over HTTP.
type Import struct {
	Request

	ID         string           `json:"id"`
	Status     Status           `json:"status"`
	Size       int64            `json:"size"` // of the file as uploaded
	Line       int              `json:"line"` // all lines up to this one are imported
	Events     int              `json:"events"`
	CreatedAt  time.Time        `json:"created_at"`
	StartedAt  *time.Time       `json:"started_at"`
	FinishedAt *time.Time       `json:"finished_at"`
	Error      string           `json:"error"`
	Report     *adminapi.Import `json:"report"`
	Starts     int              `json:"starts"` // starts that did not end with a regular shutdown
}

// ended reports whether the import has reached its final state.
func (i *Import) ended() bool { return i.Status != Waiting && i.Status != Running }

// FileError is an error whose text is meant for the author of the file. The texts of other errors are only logged.
type FileError struct{ Err error }

func (f *FileError) Error() string { return f.Err.Error() }

// Unwrap returns the reason.
func (f *FileError) Unwrap() error { return f.Err }

// The errors of Add, Get and Delete.
var (
	ErrQueue    = errors.New("too many imports of the project are waiting")
	ErrSize     = errors.New("the file is too large")
	ErrRoom     = errors.New("the files that wait take all the room there is for them")
	ErrDisk     = errors.New("there is no room on the server's disk")
	ErrNotFound = errors.New("no such import")
)

const (
	maxWaiting = 10                 // waiting imports of a project
	maxKept    = 100                // imports of a project that are remembered
	keptFor    = 7 * 24 * time.Hour // how long an ended import is remembered
	roomFactor = 4                  // how many files of the largest size may wait in total
	ownFactor  = 2                  // how many of these may belong to one project
	maxTries   = 4
	maxStarts  = 3 // after as many starts that the server did not survive, an import is given up
	atOnce     = 3 // projects whose files are imported at the same time
)

// Config configures a Service.
type Config struct {
	Folder string // the service's own
	Logger *zap.Logger
	// Run imports a file. It calls progress now and then. It returns a report, if it has one, also with an error.
	Run func(ctx context.Context, request Request, in *os.File, progress func(line, events int)) (*adminapi.Import, error)
	// Transient reports whether the same import may succeed after an error. Default: never.
	Transient func(error) bool
	// Gone reports whether a project was deleted, so that its imports are removed. Default: none was.
	Gone func(project int64) bool
	// Pause is how long the service waits before it looks for work again. Default: a second.
	Pause time.Duration
	// MaxTime is how long an import may take. Default: 12 hours.
	MaxTime time.Duration
}

// Service imports files. Several may be open on one folder; only one of them works.
type Service struct {
	config Config
	wake   chan struct{}
	end    context.CancelFunc
	done   chan struct{}

	damaged sync.Map // names of damaged records that were logged

	mu        sync.Mutex
	uploading map[*upload]bool
	running   map[string]context.CancelCauseFunc
	busy      map[int64]bool // projects with a running import
}

// New opens a service, which begins to work. It creates the folder if needed.
func New(config Config) (*Service, error) {
	if err := os.MkdirAll(config.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of imports: %w", err)
	}
	if config.Pause == 0 {
		config.Pause = time.Second
	}
	if config.MaxTime == 0 {
		config.MaxTime = 12 * time.Hour
	}
	ctx, end := context.WithCancel(context.Background())
	s := &Service{
		config: config, wake: make(chan struct{}, 1), end: end, done: make(chan struct{}), uploading: map[*upload]bool{},
		running: map[string]context.CancelCauseFunc{}, busy: map[int64]bool{},
	}
	go s.work(ctx)
	return s, nil
}

// Close stops running imports. They continue when a service is opened on the folder again.
func (s *Service) Close() error {
	s.end()
	<-s.done
	return nil
}

func (s *Service) folder(project int64) string {
	return filepath.Join(s.config.Folder, strconv.FormatInt(project, 10))
}

func (s *Service) file(project int64, id, kind string) string {
	return filepath.Join(s.folder(project), id+kind)
}

// The files of an import: its record, its data, data still being uploaded, and an empty file if it was cancelled while running.
const (
	recordFile    = ".json"
	dataFile      = ".data"
	partialFile   = ".partial"
	cancelledFile = ".cancelled"
)

// SpoolPattern matches the names of the files in the service's folder that are kept while an import reads them.
const SpoolPattern = "spool-*"

// Add stores a file and queues it for import. expected is its announced size in bytes, 0 if unknown; a file larger than most is refused with ErrSize.
func (s *Service) Add(request Request, body io.Reader, expected, most int64) (*Import, error) {
	up, err := s.enter(request.Project, expected, most)
	if err != nil {
		return nil, err
	}
	defer s.exit(up)
	one := &Import{Request: request, ID: uuid.NewString(), Status: Waiting, CreatedAt: time.Now().UTC()}
	if err := errors.Join(os.MkdirAll(s.folder(request.Project), 0o700), wholefile.SyncFolder(s.config.Folder)); err != nil {
		return nil, diskError(err)
	}
	partial := s.file(one.Project, one.ID, partialFile)
	if one.Size, err = receive(partial, &uploading{in: body, s: s, up: up}, most); err != nil {
		return nil, errors.Join(err, remove(partial))
	}
	data := s.file(one.Project, one.ID, dataFile)
	if err := os.Rename(partial, data); err != nil {
		return nil, errors.Join(diskError(err), remove(partial))
	}
	if err := s.save(one); err != nil {
		return nil, errors.Join(diskError(err), remove(data))
	}
	s.look()
	return one, nil
}

// look makes the service look for work now.
func (s *Service) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// upload is a file that is being uploaded.
type upload struct {
	project  int64
	most     int64 // bytes of a file
	reserved int64 // bytes of room that it takes: what has come, and at most one step more
}

// step is how many bytes an upload reserves at a time.
const step = 16 << 20

// enter takes a place for an upload, provided that there is room for its expected size. It reserves room for the first step.
func (s *Service) enter(project, expected, most int64) (*upload, error) {
	up := &upload{project: project, most: most}
	if err := s.reserve(up, max(expected, min(step, most)), min(step, most)); err != nil {
		return nil, err
	}
	return up, nil
}

// exit gives back the place of an upload.
func (s *Service) exit(up *upload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.uploading, up)
}

// reserve reserves more bytes for an upload, provided that there is room for needed bytes.
func (s *Service) reserve(up *upload, needed, more int64) error {
	s.mu.Lock() // an upload that ended meanwhile would be neither among the files nor among the uploads
	defer s.mu.Unlock()
	all, err := s.all()
	if err != nil {
		return err
	}
	places, size, own := 0, needed+s.spooled(), needed
	for _, one := range all {
		if one.ended() {
			continue
		}
		size += one.Size
		if one.Project == up.project {
			places++
			own += one.Size
		}
	}
	for other := range s.uploading {
		size += other.reserved
		if other.project == up.project {
			own += other.reserved
			if other != up {
				places++
			}
		}
	}
	switch {
	case places >= maxWaiting && !s.uploading[up]:
		return ErrQueue
	case size > roomFactor*up.most, own > ownFactor*up.most:
		return ErrRoom
	}
	s.uploading[up] = true
	up.reserved += more
	return nil
}

// uploading reads a body for as long as there is room for it.
type uploading struct {
	in io.Reader
	s  *Service
	up *upload
	n  int64
}

func (u *uploading) Read(into []byte) (int, error) {
	n, err := u.in.Read(into)
	if u.n += int64(n); u.n > u.up.reserved && u.n <= u.up.most {
		if err := u.s.reserve(u.up, step, step); err != nil {
			return n, err
		}
	}
	return n, err //nolint:wrapcheck // io.Reader: callers compare the error
}

// spooled returns the total size of files kept for reading, in bytes.
func (s *Service) spooled() (size int64) {
	names, err := filepath.Glob(filepath.Join(s.config.Folder, SpoolPattern))
	if err != nil {
		return 0
	}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			size += info.Size()
		}
	}
	return size
}

// receive writes a body to a file.
func receive(name string, body io.Reader, most int64) (size int64, err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // in the folder of imports
	if err != nil {
		return 0, diskError(err)
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			err = diskError(closed)
		}
	}()
	in := &bodyReader{in: body}
	size, err = io.Copy(file, io.LimitReader(in, most+1))
	switch {
	case in.err != nil:
		return size, in.err
	case err != nil:
		return size, diskError(err)
	case size > most:
		return size, ErrSize
	}
	if err := file.Sync(); err != nil {
		return size, diskError(err)
	}
	return size, nil
}

// bodyReader remembers an error of the body, to tell it from one of the disk.
type bodyReader struct {
	in  io.Reader
	err error
}

func (b *bodyReader) Read(into []byte) (int, error) {
	n, err := b.in.Read(into)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err //nolint:wrapcheck // io.Reader: callers compare the error
}

// diskError marks the error of a full disk as ErrDisk.
func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return fmt.Errorf("keeping an import: %w", err)
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing a file of an import: %w", err)
	}
	return nil
}

// save writes the record of an import.
func (s *Service) save(one *Import) error {
	text, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("BUG: encoding an import: %w", err)
	}
	return wholefile.Write(s.file(one.Project, one.ID, recordFile), bytes.NewReader(text)) //nolint:wrapcheck // the caller adds what it was doing
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
	return s.listed(s.folder(project))
}

// listed returns the imports in a folder. It leaves out those that can't be read, and logs each once.
func (s *Service) listed(folder string) ([]*Import, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing imports: %w", err)
	}
	var all []*Import
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), recordFile) {
			continue
		}
		name := filepath.Join(folder, e.Name())
		one, err := read(name)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			if _, said := s.damaged.LoadOrStore(name, true); !said {
				s.config.Logger.Error("an import is left out: its record is damaged", zap.String("file", name), zap.Error(err))
			}
			continue
		}
		all = append(all, one)
	}
	Sort(all)
	return all, nil
}

// Sort sorts imports, newest first.
func Sort(all []*Import) {
	slices.SortFunc(all, func(a, b *Import) int { return b.CreatedAt.Compare(a.CreatedAt) })
}

// all returns the imports of all projects, newest first.
func (s *Service) all() ([]*Import, error) {
	folders, err := os.ReadDir(s.config.Folder)
	if err != nil {
		return nil, fmt.Errorf("listing imports: %w", err)
	}
	var all []*Import
	for _, f := range folders {
		if _, err := strconv.ParseInt(f.Name(), 10, 64); err != nil || !f.IsDir() {
			continue
		}
		some, err := s.listed(filepath.Join(s.config.Folder, f.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	Sort(all)
	return all, nil
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
		return nil // the goroutine that runs it records that it is cancelled
	}
	return s.finish(one, Cancelled, "")
}

var (
	errCancelled = errors.New("the import was cancelled")
	errTooLong   = errors.New("the import took too long")
)

// finish records how an import ended, and removes its data.
func (s *Service) finish(one *Import, status Status, reason string) error {
	now := time.Now().UTC()
	one.Status, one.FinishedAt, one.Error = status, &now, reason
	err := s.save(one)
	if err != nil {
		err = fmt.Errorf("noting how an import ended: %w", err)
	}
	return errors.Join(err, remove(s.file(one.Project, one.ID, dataFile)), remove(s.file(one.Project, one.ID, cancelledFile)))
}

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
		select {
		case <-ctx.Done():
			return false
		case <-time.After(s.config.Pause):
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
	s.clean()
	var working sync.WaitGroup
	defer working.Wait()
	for ctx.Err() == nil {
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

// clean removes the remains of uploads that were interrupted when another process ended.
func (s *Service) clean() {
	for _, pattern := range []string{"*/*" + partialFile, "*/*" + wholefile.Suffix, SpoolPattern} {
		names, err := filepath.Glob(filepath.Join(s.config.Folder, pattern))
		if err != nil {
			continue
		}
		for _, name := range names {
			if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > time.Minute {
				_ = os.Remove(name)
			}
		}
	}
	data, err := filepath.Glob(filepath.Join(s.config.Folder, "*/*"+dataFile))
	if err != nil {
		return
	}
	for _, name := range data {
		one, err := read(strings.TrimSuffix(name, dataFile) + recordFile)
		if errors.Is(err, ErrNotFound) && old(name) || err == nil && one.ended() {
			_ = os.Remove(name)
		}
	}
}

func old(name string) bool {
	info, err := os.Stat(name)
	return err == nil && time.Since(info.ModTime()) > time.Minute
}

// next returns the import that has waited for longest, of a project with none running; nil if there is none. It forgets old imports.
func (s *Service) next() *Import {
	all, err := s.all()
	if err != nil {
		s.config.Logger.Error("looking for imports", zap.Error(err))
		return nil
	}
	var next *Import
	kept := map[int64]int{}
	for _, one := range all {
		if !one.ended() {
			if !s.isBusy(one.Project) {
				next = one
			}
			continue
		}
		if kept[one.Project]++; kept[one.Project] > maxKept || one.FinishedAt != nil && time.Since(*one.FinishedAt) > keptFor {
			if err := s.Delete(one.Project, one.ID); err != nil && !errors.Is(err, ErrNotFound) {
				s.config.Logger.Error("forgetting an import", zap.Error(err))
			}
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

// run imports a file. If the service is closed meanwhile, the import continues later.
func (s *Service) run(ctx context.Context, one *Import) {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running, stop := context.WithTimeoutCause(running, s.config.MaxTime, errTooLong)
	defer stop()
	if !s.begin(one, cancel) {
		return
	}
	defer func() {
		s.mu.Lock()
		delete(s.running, one.ID)
		s.mu.Unlock()
	}()
	err := s.try(running, one)
	switch {
	case err == nil:
		err = s.finish(one, Completed, "")
	case ctx.Err() == nil, errors.Is(context.Cause(running), errCancelled):
		err = s.ended(running, one, err)
	default:
		one.Status = Waiting
		one.Starts--
		err = s.save(one)
	}
	if err != nil {
		s.config.Logger.Error("noting how an import ended", zap.String("import", one.ID), zap.Error(err))
		select { // the same import comes again
		case <-time.After(s.config.Pause):
		case <-ctx.Done():
		}
	}
}

// begin records that an import is running, unless it was cancelled before.
func (s *Service) begin(one *Import, cancel context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, err := s.Get(one.Project, one.ID); err != nil || now.ended() {
		return false
	}
	if _, err := os.Stat(s.file(one.Project, one.ID, cancelledFile)); err == nil {
		if err := s.finish(one, Cancelled, ""); err != nil {
			s.config.Logger.Error("noting that an import was cancelled", zap.String("import", one.ID), zap.Error(err))
		}
		return false
	}
	if one.Starts >= maxStarts {
		err := s.finish(one, Failed, fmt.Sprintf("The server stopped %d times while it was importing the file.", one.Starts))
		if err != nil {
			s.config.Logger.Error("giving up an import", zap.String("import", one.ID), zap.Error(err))
		}
		return false
	}
	now := time.Now().UTC()
	one.Status, one.StartedAt = Running, &now
	one.Starts++
	s.running[one.ID] = cancel
	return true
}

// ended records why an import failed.
func (s *Service) ended(running context.Context, one *Import, err error) error {
	if errors.Is(context.Cause(running), errCancelled) {
		return s.finish(one, Cancelled, "")
	}
	if errors.Is(context.Cause(running), errTooLong) {
		return s.finish(one, Failed, fmt.Sprintf("The import took longer than %s. Split the file into smaller ones: what was already imported is skipped.", s.config.MaxTime))
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
		select {
		case <-time.After(time.Duration(tries*tries) * 5 * s.config.Pause):
		case <-ctx.Done():
			return context.Cause(ctx)
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
		return diskError(err)
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

// Package imports imports files that are uploaded over HTTP. It keeps them on disk until they are imported, one after the other within a project, and
// remembers the outcomes.
package imports

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

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
	ErrRoom     = errors.New("the waiting files take up all the space reserved for them")
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
	maxStarts  = 3  // after as many starts that the server did not survive, an import is given up
	atOnce     = 3  // projects whose files are imported at the same time
	againAfter = 10 // pauses until an import comes again whose record could not be written
	cleanEvery = 60 // pauses between two looks for remains of what was interrupted
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

	queuing sync.Mutex
	queues  map[string]queue // by folder, as last read

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

// The files of an import: its record, its data, data still being uploaded, and an empty file if it was canceled while running.
const (
	recordFile    = ".json"
	dataFile      = ".data"
	partialFile   = ".partial"
	cancelledFile = ".cancelled"
)

// spoolPattern matches the names of the files in the service's folder that are kept while an import reads them.
const spoolPattern = "spool-*"

// look makes the service look for work now.
func (s *Service) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Package journal keeps entries on disk, in order, until they have been delivered. It does not look at their content.
//
// The log is a folder of segments, files to which records are appended. A record is a zstd skippable frame, the header, and then the entry's data as a zstd
// frame, so `zstd -dc *.zst` prints what waits. Both have a checksum. Records that arrive together are written and synced together. A segment is removed when
// all of it is delivered.
//
// SQLite (WAL, synchronous=FULL, one transaction per group) was measured for comparison, with entries of 50 KB. It manages about as many appends per second.
// But it writes twice as many bytes, takes five times as long to free 1 GiB, and one damaged bit can cost many entries. Here it costs one. Logs made for Raft
// and for LSM trees stop at damage, or skip all entries near it.
package journal

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

var (
	// ErrFull is returned by Append when the entry would make the log larger than Options.MaxBytes. Nothing of the entry is kept.
	ErrFull = errors.New("the event log is full")
	// ErrTooLarge is returned by Append for an entry of more than 256 MiB, or with an impossible number of events.
	ErrTooLarge = errors.New("the entry is too large for the event log")
	// ErrClosed is returned by all methods after Close.
	ErrClosed = errors.New("the event log is closed")
)

const (
	defaultMaxBytes = 4 << 30
	maxSegment      = 32 << 20
	minSegment      = 64 << 10
	maxData         = 256 << 20
)

// Entry is what one request brought.
type Entry struct {
	ID      uint64 // set by Append: ascending in the order of the log, with gaps, and never reused
	Project int64
	Arrived time.Time // to the nanosecond; read back in UTC
	Events  int       // how many events Data holds; only counted here
	Data    []byte    // at most 256 MiB
}

// Options are the limits of a journal.
type Options struct {
	// The most bytes that the segments may take on disk. Files set aside do not count. Default: 4 GiB.
	MaxBytes int64
	// Where damage is reported. Default: nowhere.
	Logger *zap.Logger
}

// Stats describes what waits in a journal.
type Stats struct {
	Bytes    int64     // size of the segments, which is what MaxBytes limits
	MaxBytes int64     //
	Entries  int64     // entries that are not delivered yet
	Events   int64     // events in them
	Oldest   time.Time // when the first of them arrived; zero if there is none
	Aside    int       // files set aside: entries that could not be delivered, and damaged parts of the log
}

// Journal is a log on disk. Its methods may be called concurrently; those that read and forget are meant for one reader.
type Journal struct {
	dir         string
	log         *zap.Logger
	maxBytes    int64
	segmentSize int64
	lock        *flock.Flock
	position    *os.File
	enc         *zstd.Encoder
	dec         *zstd.Decoder
	wake        chan struct{} // tells the committer that the queue is not empty, or that the journal is closed
	stopped     chan struct{} // closed when the committer has returned

	// Taken in this order.
	reading  sync.Mutex // held by what reads or forgets; guards the fields up to place, and mark and damaged of segments
	writing  sync.Mutex // held while segments are written; guards active and buf
	counting sync.Mutex // held while files are set aside or counted; guards listed
	mu       sync.Mutex // guards the rest; never held during I/O

	listed   time.Time // when the folder of what was set aside was last listed
	cursor   cursor
	progress Progress // beyond forgotten; zero while no project is behind
	counted  Progress // the one whose entries no longer count as waiting
	taken    map[uint64]taken
	place    int // of the position file, the one written last

	active *segment // the one that is appended to; nil when the next group starts a new one
	buf    []byte   // of the last write

	closed    bool
	queue     []*request
	queued    int64 // bytes of the queue, and of the group that is being written
	segments  []*segment
	bytes     int64
	lastID    uint64        // the newest entry on disk
	nextID    uint64        // larger than lastID after a failed write
	forgotten uint64        // entries up to here are delivered
	oldest    time.Time     // arrival of the first waiting entry
	changed   chan struct{} // closed and replaced when entries were added
	aside     int
}

// Open opens the journal in the folder dir, and creates it if there is none. Only one process at a time may have it open. Open removes what a crash left
// incomplete at the end.
func Open(dir string, o Options) (*Journal, error) {
	j := &Journal{
		dir: dir, log: cmp.Or(o.Logger, zap.NewNop()), maxBytes: cmp.Or(o.MaxBytes, defaultMaxBytes),
		lock: flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600)), wake: make(chan struct{}, 1), stopped: make(chan struct{}), changed: make(chan struct{}),
		taken: map[uint64]taken{},
	}
	j.segmentSize = min(max(j.maxBytes/16, minSegment), maxSegment)
	if err := j.open(); err != nil {
		j.release()
		return nil, fmt.Errorf("opening the event log in %s: %w", dir, err)
	}
	go j.commitAll()
	return j, nil
}

func (j *Journal) open() (err error) {
	if err := os.MkdirAll(j.AsideDir(), 0o700); err != nil {
		return err
	}
	if err := errors.Join(wholefile.SyncFolder(j.dir), wholefile.SyncFolder(filepath.Dir(j.dir))); err != nil {
		return err
	}
	if err := j.takeLock(); err != nil {
		return err
	}
	if j.enc, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
		return err
	}
	if j.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxData)); err != nil {
		return err
	}
	if err := j.openPosition(); err != nil {
		return err
	}
	if err := j.openProgress(); err != nil {
		return err
	}
	if err := j.openSegments(); err != nil {
		return err
	}
	if j.progress.Last > j.lastID {
		if err := j.dropProgress(); err != nil {
			return err
		}
	}
	before := j.forgotten
	if err := j.skipForgotten(); err != nil {
		return err
	}
	if j.forgotten > before { // before what has these IDs is removed
		if err := j.writePosition(j.forgotten); err != nil {
			return err
		}
	}
	j.forgetProgress()
	if err := j.uncountAll(); err != nil {
		return err
	}
	j.removeForgotten()
	return j.countAside()
}

// takeLock locks the folder until the journal is closed or the process ends.
func (j *Journal) takeLock() error {
	locked, err := j.lock.TryLock()
	if err == nil && !locked {
		err = errors.New("it is in use by another process; only one at a time may use it")
	}
	return err
}

// Close waits until what was appended is on disk, and releases the folder.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	close(j.changed)
	j.mu.Unlock()
	j.signal()
	<-j.stopped

	j.reading.Lock()
	defer j.reading.Unlock()
	j.release()
	return nil
}

func (j *Journal) release() {
	for _, s := range j.segments {
		_ = s.file.Close()
	}
	if j.position != nil {
		_ = j.position.Close()
	}
	if j.dec != nil {
		j.dec.Close()
	}
	_ = j.lock.Close() // which unlocks the folder
}

func (j *Journal) isClosed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.closed
}

// Stats reports what waits. It does no I/O.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Stats{Bytes: j.bytes, MaxBytes: j.maxBytes, Aside: j.aside}
	for _, segment := range j.segments {
		s.Entries += segment.waiting.entries
		s.Events += segment.waiting.events
	}
	if s.Entries > 0 {
		s.Oldest = j.oldest
	}
	return s
}

// Waiting describes the waiting entries of one project.
type Waiting struct {
	Entries, Events int64
	Bytes           int64     // size of the entries
	Oldest          time.Time // no waiting entry arrived before this, or hardly before; zero if there is none
}

// Waiting reports the waiting entries of a project. It does no I/O.
func (j *Journal) Waiting(project int64) (w Waiting) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.segments {
		of, ok := s.waiting.projects[project]
		if !ok {
			continue
		}
		if w.Entries == 0 {
			w.Oldest = time.Unix(0, of.first).UTC()
			if j.oldest.After(w.Oldest) { // entries are forgotten in order
				w.Oldest = j.oldest
			}
		}
		w.Entries, w.Events, w.Bytes = w.Entries+of.entries, w.Events+of.events, w.Bytes+of.bytes
	}
	return w
}

// SetMaxBytes changes the limit of the journal. Existing entries stay.
func (j *Journal) SetMaxBytes(most int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.maxBytes = most
}

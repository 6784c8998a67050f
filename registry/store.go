package registry

import (
	"context"
	"errors"
	"time"
)

// Store keeps records and logs, without interpreting them. It is safe for concurrent use, and for use by several processes if it can be shared.
// registrytest.Run tests an implementation.
type Store interface {
	// Revision returns the number of the last write that put a record, and its mark; 0 for an empty store. Marks are random numbers that tell writes of the same
	// revision apart, where the data can be set back while others have it open: by a failover that loses the latest writes, or a backup that is restored. In
	// stores where that can't happen, all marks are 0.
	Revision(ctx context.Context) (revision uint64, mark int64, err error)
	// Load returns the records that were put after revision since, as of one moment and in any order; 0 asks for all that exist. Its cost grows with what changed,
	// not with what the store holds. The caller compares the mark of since: if it differs, the changes do not follow what was read before.
	Load(ctx context.Context, since uint64) (*Changes, error)
	// Write does all of w in one transaction, or nothing. When it returns nil, w is durable. The revision is the next number, or 0 if w puts no record. If an
	// expectation does not hold, the error is ErrStale; if another record has one of its unique keys, it is a *ConflictError.
	Write(ctx context.Context, w *Write) (revision uint64, err error)
	// Entries returns a part of a log, latest first and then by greatest id, and how many entries all parts have.
	Entries(ctx context.Context, project int64, log string, page EntryPage) (entries []Entry, total int, err error)
	// Watch calls changed after another process, or another store on the same data, may have put records. It returns nil when ctx ends, and an error if it can't
	// watch now. It may miss writes, and report some that did not happen: the registry also asks for the revision from time to time.
	Watch(ctx context.Context, changed func()) error
	// Lock waits, until ctx ends, for a lock that one caller at a time holds, among all processes that share the store. Names of locks and holders consist of
	// letters, digits and hyphens. The lock of a process that dies is released. others reports whether another holder may have had it since this one did, and so
	// may have changed what it protects.
	Lock(ctx context.Context, name, holder string) (others bool, release func(), err error)
	// TryLock is like Lock, except that it does not wait for another caller: the error is ErrHeld if one has the lock.
	TryLock(ctx context.Context, name, holder string) (others bool, release func(), err error)
	// Keep keeps data of up to 256 MiB under a name, in place of what was there; empty data keeps nothing. When it returns nil, the data is durable. It is meant
	// for data that a lock protects. It is not a record: nobody is told of it.
	Keep(ctx context.Context, name string, data []byte) error
	// Kept returns what is kept under a name; nil for nothing.
	Kept(ctx context.Context, name string) ([]byte, error)
	// Close releases the store's resources.
	Close() error
}

// LockChecker is a Store that can lose a lock while it is held, for example with its connection.
type LockChecker interface {
	// CheckLocks returns an error if another caller may have got one of the locks since this store took them. The caller holds them all.
	CheckLocks(ctx context.Context, names []string) error
}

// Kind is a kind of records.
type Kind string

// Record is one item that a store keeps. Project, Kind and ID identify it. None of its texts contains a NUL.
type Record struct {
	Project int64 // 0 if it belongs to none
	Kind    Kind
	ID      string
	Unique  []string // keys that no two records of a kind may share
	Data    []byte   // JSON; nil: the record is removed
	// Revision is the revision of the write that put it. Load sets it; Write ignores it.
	Revision uint64
}

// Changes is the result of Store.Load.
type Changes struct {
	Revision uint64
	// Whole says that Records are all records: what is not among them is gone. It is set if since is 0, later than Revision (an older state was restored), or so
	// early that the store has forgotten what was removed since. Otherwise Records includes removed records.
	Whole   bool
	Records []Record
	// Mark is the mark of Revision, and SinceMark that of since; 0 if it is not known.
	Mark, SinceMark int64
}

// Write is a set of changes that happen together.
type Write struct {
	Expect []Expectation
	Put    []Record // each named once
	Append []Entry
	Forget []Forgotten
	Bounds []Bound // of logs that are appended to
	// Mark is the mark of the revision, if there is one. Store.Write sets it.
	Mark int64
}

// Expectation says that nothing of a project was put or removed after a revision. Kind limits it to records of a kind, ID to one record. It does not hold if
// the store has forgotten any removal since, because then it is not known what was removed.
type Expectation struct {
	Project  int64
	Kind     Kind   // empty: any kind, whatever ID says
	ID       string // with a Kind; see One
	One      bool   // only the record with this ID
	Revision uint64
	Mark     int64 // of Revision: if the store has another one, the expectation does not hold; 0: any will do
}

// Entry is one entry of a log. It replaces an entry of the same ID, unless that one is later.
type Entry struct {
	Project int64
	Log     string
	ID      string
	Item    string // what it is about
	By      string // id of a key
	At      time.Time
	Data    []byte // JSON; nil for none
}

// EntryPage selects a part of a log.
type EntryPage struct {
	Items         []string // only entries about one of these; nil: about anything
	By            string   // only entries by this key; empty: by anyone
	Since         time.Time
	Limit, Offset int // a Limit of 0: all
}

// Forgotten selects entries of a log to remove: those about Item, or those by a key.
type Forgotten struct {
	Project int64
	Log     string
	Item    string // empty: those by By
	By      string
}

// Bound limits a log. When it has more entries, or its Data takes more bytes, the oldest go until it is down to nine tenths of both.
type Bound struct {
	Project int64
	Log     string
	Entries int
	Bytes   int64
}

// ErrStale says that an expectation of a write does not hold.
var ErrStale = errors.New("another write came first")

// ConflictError refuses a record whose unique key another record of the kind has.
type ConflictError struct {
	Kind Kind
	Key  string // may hold what a user wrote; not in the error's text
}

// Error names the kind.
func (e *ConflictError) Error() string {
	return "another " + string(e.Kind) + " has the same unique key"
}

package registry

import (
	"context"
	"errors"
	"time"
)

// Store keeps records and logs. It knows nothing of what they mean. It is safe for concurrent use, by several processes too
// where it can be shared. registrytest.Run examines one.
type Store interface {
	// Revision returns the number of the last write that put a record, and its mark; 0 for an empty store. Marks are random numbers that tell
	// writes of the same revision apart, where the data can be set back while others have them open: by a failover that loses the latest
	// writes, or a backup that is restored. In stores where that can't be, all marks are 0.
	Revision(ctx context.Context) (revision uint64, mark int64, err error)
	// Load returns the records that were put after revision since, as of one moment and in any order; 0 asks for all that are
	// there. What it reads grows with what changed, not with what the store holds. Whoever asks compares the mark of since: if it is another
	// one, the changes do not follow on what was read before.
	Load(ctx context.Context, since uint64) (*Changes, error)
	// Write does all of w in one transaction, or nothing. When it returns nil, w is durable. The revision is the next number, and 0
	// when w puts no record. An expectation that does not hold is ErrStale, a unique key of another record a *ConflictError.
	Write(ctx context.Context, w *Write) (revision uint64, err error)
	// Entries returns a part of a log, latest first and then by greatest id, and how many entries there are in all parts.
	Entries(ctx context.Context, project int64, log string, page EntryPage) (entries []Entry, total int, err error)
	// Watch calls changed after another process, or another store on the same data, may have put records. It returns nil when ctx
	// ends. It may miss some writes and report others that were not there: the registry also asks for the revision from time to time.
	// An error says that it can't watch now.
	Watch(ctx context.Context, changed func()) error
	// Lock waits until ctx ends for a lock that one caller holds at a time, of all processes that share the store. Names of locks and
	// holders are made of letters, digits and hyphens. The lock of a process that dies is released. others reports whether another
	// holder may have had it since this one did, and so have changed what it protects.
	Lock(ctx context.Context, name, holder string) (others bool, release func(), err error)
	// Keep keeps data of up to 256 MiB under a name, in place of what was there; none keeps nothing. When it returns nil, the data is
	// durable. It is for data that a lock protects, and no record: nobody is told of it.
	Keep(ctx context.Context, name string, data []byte) error
	// Kept returns what is kept under a name; nil for nothing.
	Kept(ctx context.Context, name string) ([]byte, error)
	// Close releases the store's resources.
	Close() error
}

// Kind is a kind of records.
type Kind string

// Record is one thing that a store keeps. Project, Kind and ID name it. No text of it holds a NUL.
type Record struct {
	Project int64 // 0 for what belongs to none
	Kind    Kind
	ID      string
	Unique  []string // keys that no two records of a kind may share
	Data    []byte   // JSON; nil: the record is removed
	// Revision is that of the write that put it. Load sets it; Write does not look at it.
	Revision uint64
}

// Changes is what Store.Load found.
type Changes struct {
	Revision uint64
	// Whole says that Records are all there are: what is not among them is gone. It is set when since is 0, later than Revision (an
	// older state was restored), or so early that the store has forgotten what was removed since. Otherwise records that were
	// removed are among the others.
	Whole   bool
	Records []Record
	// Mark is that of Revision, and SinceMark that of the revision that was asked about; 0 where it is not known.
	Mark, SinceMark int64
}

// Write is what happens together.
type Write struct {
	Expect []Expectation
	Put    []Record // each named once
	Append []Entry
	Forget []Forgotten
	Bounds []Bound // of logs that are appended to
	// Mark is that of the revision, if there is one. Store.Write sets it.
	Mark int64
}

// Expectation says that nothing of a project was put or removed after a revision. Kind limits it to records of a kind, ID to one
// record. It does not hold when the store has forgotten anything that was removed since: nobody knows then of what that was.
type Expectation struct {
	Project  int64
	Kind     Kind   // empty: of any kind, whatever ID says
	ID       string // with a Kind; see One
	One      bool   // the record of this ID alone
	Revision uint64
	Mark     int64 // of Revision: if the store has another one, the expectation does not hold; 0: any will do
}

// Entry is one entry of a log. One whose ID the log has already takes the place of the other, unless that one is later.
type Entry struct {
	Project int64
	Log     string
	ID      string
	Item    string // what it is about
	By      string // id of a key
	At      time.Time
	Data    []byte // JSON; nil for none
}

// EntryPage says which part of a log is wanted.
type EntryPage struct {
	Items         []string // only entries about one of these; nil: about anything
	By            string   // only entries by this key; empty: by anyone
	Since         time.Time
	Limit, Offset int // a Limit of 0: all
}

// Forgotten names entries of a log that are removed: those about Item, or those by a key.
type Forgotten struct {
	Project int64
	Log     string
	Item    string // empty: those by By
	By      string
}

// Bound limits a log. When it has more entries, or its Data takes more bytes, the oldest go until it has nine tenths of both.
type Bound struct {
	Project int64
	Log     string
	Entries int
	Bytes   int64
}

// ErrStale says that an expectation of a write does not hold.
var ErrStale = errors.New("another write came first")

// ConflictError is how a Store refuses a record whose unique key another record of the kind has.
type ConflictError struct {
	Kind Kind
	Key  string // may hold what a user wrote; not in the error's text
}

// Error names the kind.
func (e *ConflictError) Error() string {
	return "another " + string(e.Kind) + " has the same unique key"
}

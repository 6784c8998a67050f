package delivery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

// Logs are the journals of captured events, one for each shard of ClickHouse. Each has a delivery of its own, so that events wait only for their own shard,
// whether or not the others can be reached. A journal is created with the first event for its shard. Existing journals are emptied even if no config names
// their shard any more: their events wait for a target that knows it. The deliveries share the targets.
type Logs struct {
	*targets

	dir    string
	logger *zap.Logger

	mu       sync.RWMutex
	closed   bool
	maxBytes int64
	logs     map[string]*Log // by the name of the shard
}

// Log is the journal of one shard, with its delivery.
type Log struct {
	Shard    string // empty for the main one
	Journal  *journal.Journal
	Delivery *Delivery
}

// shardsDir is the folder with the journals of all shards but the main one, each in a folder named after its shard.
const shardsDir = "shards"

// OpenLogs opens the journals in a folder, which itself is the journal of the main shard. Each may take maxBytes on disk.
func OpenLogs(dir string, maxBytes int64, logger *zap.Logger) (*Logs, error) {
	l := &Logs{targets: newTargets(), dir: dir, logger: logger, maxBytes: maxBytes, logs: map[string]*Log{}}
	shards, err := os.ReadDir(filepath.Join(dir, shardsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for the event logs of shards: %w", err)
	}
	names := []string{""}
	for _, found := range shards {
		if found.IsDir() {
			names = append(names, found.Name())
		}
	}
	for _, name := range names {
		if _, err := l.of(name); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// Close ends the deliveries. What is not delivered stays in the journals.
func (l *Logs) Close() error {
	l.mu.Lock()
	l.closed = true
	logs := slices.Collect(maps.Values(l.logs))
	l.mu.Unlock()
	var errs []error
	for _, one := range logs {
		errs = append(errs, one.Delivery.Close(), one.Journal.Close())
	}
	return errors.Join(errs...)
}

// Append appends an entry to the journal of a project's shard, as [journal.Journal.Append] does.
func (l *Logs) Append(ctx context.Context, shard string, e journal.Entry) error {
	one, err := l.of(shard)
	if err != nil {
		return err
	}
	return one.Journal.Append(ctx, e)
}

// of returns the log of a shard, and creates it if there is none.
func (l *Logs) of(shard string) (*Log, error) {
	if one := l.Of(shard); one != nil {
		return one, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, journal.ErrClosed
	}
	if one := l.logs[shard]; one != nil {
		return one, nil
	}
	dir, logger := l.dir, l.logger
	if shard != "" {
		if filepath.Dir(filepath.Join(shardsDir, shard)) != shardsDir {
			return nil, fmt.Errorf("the shard %q can't have an event log: its name is not a valid folder name", shard)
		}
		dir, logger = filepath.Join(l.dir, shardsDir, shard), logger.With(zap.String("shard", shard))
		if err := errors.Join(os.MkdirAll(filepath.Dir(dir), 0o700), wholefile.SyncFolder(l.dir)); err != nil {
			return nil, fmt.Errorf("making the folder of event logs: %w", err)
		}
	}
	j, err := journal.Open(dir, journal.Options{MaxBytes: l.maxBytes, Logger: logger})
	if err != nil {
		return nil, err
	}
	one := &Log{Shard: shard, Journal: j, Delivery: begin(j, l.targets, logger)}
	l.logs[shard] = one
	return one, nil
}

// Of returns the log of a shard; nil if no event ever came for it.
func (l *Logs) Of(shard string) *Log {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.logs[shard]
}

// All lists the logs: the main shard's first, then the others by name.
func (l *Logs) All() []*Log {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]*Log, 0, len(l.logs))
	for _, shard := range slices.Sorted(maps.Keys(l.logs)) {
		all = append(all, l.logs[shard])
	}
	return all
}

// SetMaxBytes changes the limit of each journal. Existing entries stay.
func (l *Logs) SetMaxBytes(most int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxBytes = most
	for _, one := range l.logs {
		one.Journal.SetMaxBytes(most)
	}
}

// Stats reports what waits in all journals. It does no I/O.
func (l *Logs) Stats() (sum journal.Stats) {
	for _, one := range l.All() {
		s := one.Journal.Stats()
		sum.Bytes, sum.MaxBytes, sum.Entries, sum.Events, sum.Aside = sum.Bytes+s.Bytes, sum.MaxBytes+s.MaxBytes, sum.Entries+s.Entries, sum.Events+s.Events, sum.Aside+s.Aside
		if sum.Oldest.IsZero() || !s.Oldest.IsZero() && s.Oldest.Before(sum.Oldest) {
			sum.Oldest = s.Oldest
		}
	}
	return sum
}

// Waiting reports what is waiting for a project in all journals. It does no I/O.
func (l *Logs) Waiting(project int64) (sum journal.Waiting) {
	for _, one := range l.All() {
		w := one.Journal.Waiting(project)
		sum.Entries, sum.Events, sum.Bytes = sum.Entries+w.Entries, sum.Events+w.Events, sum.Bytes+w.Bytes
		if sum.Oldest.IsZero() || !w.Oldest.IsZero() && w.Oldest.Before(sum.Oldest) {
			sum.Oldest = w.Oldest
		}
	}
	return sum
}

// Status reports how all deliveries are doing now: Lag is the longest one, and Failing has the reason of each delivery that fails, with the name of its shard.
func (l *Logs) Status() (sum Status) {
	var failing []string
	for _, one := range l.All() {
		s := one.Delivery.Status()
		sum.add(s)
		if s.Failing != "" && one.Shard != "" {
			s.Failing = "shard " + one.Shard + ": " + s.Failing
		}
		if s.Failing != "" {
			failing = append(failing, s.Failing)
		}
	}
	sum.Failing = strings.Join(failing, "\n")
	return sum
}

// StatusOf sums up [Delivery.StatusOf] over all deliveries.
func (l *Logs) StatusOf(project int64) (sum Status) {
	for _, one := range l.All() {
		sum.add(one.Delivery.StatusOf(project))
	}
	return sum
}

func (s *Status) add(other Status) {
	s.Delivered, s.SetAside, s.Lag = s.Delivered+other.Delivered, s.SetAside+other.SetAside, max(s.Lag, other.Lag)
}

// Forget removes the counts of a project that is gone.
func (l *Logs) Forget(project int64) {
	for _, one := range l.All() {
		one.Delivery.Forget(project)
	}
}

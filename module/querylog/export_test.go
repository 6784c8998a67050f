package querylog

import "time"

// TryAgain ends the time in which nothing is written to a project's shard.
func (l *Log) TryAgain(project int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(project).offUntil = time.Time{}
}

// WriteCounts writes what is waiting for a project's shard, with the counts of runs.
func (l *Log) WriteCounts(project int64) error {
	l.gather(true)
	return l.of(project).flush(l.open)
}

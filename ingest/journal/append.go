package journal

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// request is an entry that waits to be written.
type request struct {
	header
	body []byte
	done chan error
}

// Append returns nil when the entry is on disk. Calls that wait together share one sync. Entry.ID is ignored; Data is not used after Append has returned.
//
// If ctx ends first, Append returns its error, and the entry may or may not be kept. ErrFull means that it was not kept. Any other error, such as a full disk,
// means that it was not kept unless removing what was written of it failed too. Later calls try again.
func (j *Journal) Append(ctx context.Context, e Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(e.Data) > maxData || e.Events < 0 || e.Events > maxData {
		return ErrTooLarge
	}
	r := &request{body: j.enc.EncodeAll(e.Data, nil), done: make(chan error, 1)}
	r.header = header{
		project: e.Project, arrived: e.Arrived.UnixNano(), bodySum: crc32.Checksum(r.body, castagnoli),
		events: uint32(e.Events), dataSize: uint32(len(e.Data)), bodySize: uint32(len(r.body)), //nolint:gosec // at most maxData
	}
	if err := j.enqueue(r); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j *Journal) enqueue(r *request) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return ErrClosed
	}
	if j.bytes+j.queued+r.size() > j.maxBytes {
		return ErrFull
	}
	j.queue = append(j.queue, r)
	j.queued += r.size()
	j.signal()
	return nil
}

func (j *Journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// commitAll writes the queue, one group after the other, until the journal is closed.
func (j *Journal) commitAll() {
	defer close(j.stopped)
	for range j.wake {
		for group := j.nextGroup(); len(group) > 0; group = j.nextGroup() {
			err := j.commit(group)
			for _, r := range group {
				r.done <- err
			}
		}
		if j.isClosed() {
			return
		}
	}
}

// maxGroup limits how much one write holds, so that the first of many large entries do not wait for all of them.
const maxGroup = 4 << 20

func (j *Journal) nextGroup() []*request {
	j.mu.Lock()
	defer j.mu.Unlock()
	var size int64
	for i, r := range j.queue {
		if size += r.size(); size > maxGroup && i > 0 {
			group := j.queue[:i:i]
			j.queue = j.queue[i:]
			return group
		}
	}
	group := j.queue
	j.queue = nil
	return group
}

func (j *Journal) commit(group []*request) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	id := j.takeIDs(group)
	s, err := j.writable(id)
	if err == nil {
		err = j.write(s, group)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var size int64
	for _, r := range group {
		size += r.size()
	}
	j.queued -= size
	if err != nil {
		return fmt.Errorf("writing to the event log: %w", err)
	}
	j.added(s, group, size)
	return nil
}

func (j *Journal) takeIDs(group []*request) (first uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	first = j.nextID
	for _, r := range group {
		r.id = j.nextID
		j.nextID++
	}
	return first
}

// writable returns the segment for the next group.
func (j *Journal) writable(id uint64) (*segment, error) {
	if j.active != nil && j.active.size < j.segmentSize {
		return j.active, nil
	}
	s, err := j.createSegment(id)
	if err != nil {
		return nil, err
	}
	j.active = s
	return s, nil
}

// write appends a group and syncs. If that fails, the segment is cut back to what is known to be on disk, and not written to again: after a failed sync, what
// the kernel holds of the file is unknown.
func (j *Journal) write(s *segment, group []*request) error {
	j.buf = j.buf[:0]
	for _, r := range group {
		j.buf = append(r.append(j.buf, s.salt), r.body...)
	}
	_, err := s.file.WriteAt(j.buf, s.size)
	if cap(j.buf) > 2*maxGroup {
		j.buf = nil
	}
	if err == nil {
		err = s.file.Sync()
	}
	if err == nil {
		return nil
	}
	j.active = nil
	if s.size == 0 {
		s.remove()
		return err
	}
	return errors.Join(err, s.file.Truncate(s.size))
}

// added makes a group visible to Read. The caller holds mu.
func (j *Journal) added(s *segment, group []*request, size int64) {
	if s.size == 0 {
		j.segments = append(j.segments, s)
	}
	if j.lastID == j.forgotten {
		j.oldest = time.Unix(0, group[0].arrived).UTC()
	}
	for _, r := range group {
		s.waiting.add(r.header)
	}
	s.size += size
	j.bytes += size
	s.last = group[len(group)-1].id
	j.lastID = s.last
	if !j.closed {
		close(j.changed)
		j.changed = make(chan struct{})
	}
}

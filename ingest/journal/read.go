package journal

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"
)

// cursor is where the last Read ended, because the next one usually continues there.
type cursor struct {
	segment *segment
	off     int64
	id      uint64
}

// Read returns the entries after the given ID that are not delivered, oldest first: as many as fit into maxBytes of data, and at least one. It waits until
// there is one, until ctx ends or until the journal is closed. A damaged part of the log is reported, copied to the aside folder, and skipped.
func (j *Journal) Read(ctx context.Context, after uint64, maxBytes int) ([]Entry, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b := batch{after: after, upTo: math.MaxUint64, room: int64(maxBytes)}
		changed, err := j.read(&b)
		if err != nil || len(b.entries) > 0 {
			return b.entries, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// read fills a batch, and returns what to wait for if there is nothing for it.
func (j *Journal) read(b *batch) (changed <-chan struct{}, err error) {
	j.reading.Lock()
	defer j.reading.Unlock()
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil, ErrClosed
	}
	changed = j.changed
	b.after = max(b.after, j.forgotten)
	var parts []part
	for _, s := range j.segments {
		if s.last > b.after && s.first <= b.upTo {
			parts = append(parts, part{s, s.size})
		}
	}
	j.mu.Unlock()

	for _, p := range parts {
		if err := j.readPart(p, b); err != nil {
			return nil, fmt.Errorf("reading %s: %w", p.path, err)
		}
		if b.full {
			break
		}
	}
	for _, t := range b.taken {
		j.taken[t.id] = t
	}
	if len(b.entries) == 0 && b.damaged {
		return changed, j.forgetLocked(0) // what is damaged will never be delivered
	}
	return changed, nil
}

// part is the part of a segment that was on disk when Read or Copy began.
type part struct {
	*segment
	end int64
}

// batch collects the entries of one Read.
type batch struct {
	entries []Entry
	after   uint64                              // the last entry seen
	upTo    uint64                              // the last entry to look at
	wanted  func(project int64, id uint64) bool // nil for all
	room    int64                               // bytes
	full    bool
	damaged bool
	taken   []taken // the entries of Next, and those that are damaged
}

func (j *Journal) readPart(p part, b *batch) error {
	start := p.mark
	if j.cursor.segment == p.segment && j.cursor.id == b.after {
		start = max(start, j.cursor.off)
	}
	sc := newScanner(p.file, p.salt, start, p.end)
	for end := start; ; end = sc.off {
		h, at, err := sc.next()
		if errors.Is(err, io.EOF) {
			j.skipDamage(p.segment, end, p.end, b)
			return nil
		}
		if err != nil {
			return err
		}
		j.skipDamage(p.segment, end, at, b)
		if h.id <= b.after {
			continue
		}
		if h.id > b.upTo {
			return nil
		}
		if j.progress.has(h) || b.wanted != nil && !b.wanted(h.project, h.id) {
			j.passed(p.segment, sc.off, h.id, b)
			continue
		}
		if len(b.entries) > 0 && int64(h.dataSize) > b.room {
			b.full = true
			return nil
		}
		data, err := j.readData(p, h, at)
		if err != nil {
			return err
		}
		if b.wanted != nil {
			b.taken = append(b.taken, taken{h, p.segment})
		}
		j.passed(p.segment, sc.off, h.id, b)
		if data == nil {
			b.damaged = true
			j.skipEntry(p.segment, h.id, at, sc.off)
			continue
		}
		b.room -= int64(len(data))
		b.entries = append(b.entries, Entry{ID: h.id, Project: h.project, Arrived: time.Unix(0, h.arrived).UTC(), Events: int(h.events), Data: data})
	}
}

// passed notes that an entry was looked at.
func (j *Journal) passed(s *segment, off int64, id uint64, b *batch) {
	b.after = id
	if b.upTo == math.MaxUint64 { // what reads an earlier part of the log does not come back to it
		j.cursor = cursor{s, off, id}
	}
}

// readData returns the data of a record; nil if it is damaged.
func (j *Journal) readData(p part, h header, at int64) ([]byte, error) {
	body := make([]byte, h.bodySize)
	if _, err := p.file.ReadAt(body, at+headerSize); err != nil {
		return nil, err
	}
	if crc32.Checksum(body, castagnoli) != h.bodySum {
		return nil, nil
	}
	data, err := j.dec.DecodeAll(body, make([]byte, 0, max(h.dataSize, 1)))
	if err != nil || len(data) != int(h.dataSize) {
		return nil, nil //nolint:nilerr // it is reported as damage
	}
	return data, nil
}

// skipDamage skips what is damaged between headers. Each Read or Next comes by it, in order.
func (j *Journal) skipDamage(s *segment, from, to int64, b *batch) {
	if from == to {
		return
	}
	b.damaged = true
	if from >= s.reported {
		s.reported = to
		_ = j.reportDamage(s, from, to-from) // it is logged; the rest is delivered all the same
	}
}

// skipEntry skips an entry whose data is damaged. Later ones may have been read before, of projects that are not behind.
func (j *Journal) skipEntry(s *segment, id uint64, from, to int64) {
	if s.damaged[id] {
		return
	}
	if s.damaged == nil {
		s.damaged = map[uint64]bool{}
	}
	s.damaged[id] = true
	_ = j.reportDamage(s, from, to-from) // it is logged; the rest is delivered all the same
}

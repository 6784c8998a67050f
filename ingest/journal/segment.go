package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

// segment is one file of the log. It is only appended to, and only by the process that created it.
type segment struct {
	path  string
	salt  uint64
	file  *os.File
	first uint64 // no entry has a smaller ID

	// Guarded by Journal.mu.
	size    int64  // bytes that are on disk for sure
	last    uint64 // the newest entry
	waiting counts

	// Guarded by Journal.reading.
	mark     int64           // offset of the first entry that is not forgotten
	reported int64           // damage between headers before this offset has been reported
	damaged  map[uint64]bool // entries whose data is, which has been reported
}

// counts are entries, in all and by project.
type counts struct {
	entries, events int64
	projects        map[int64]projectCounts
}

// projectCounts are the entries of one project.
type projectCounts struct {
	entries, events, bytes int64
	first                  int64 // when the first of them arrived, in Unix nanoseconds; it may be an earlier one that is gone
}

func (c *counts) add(h header) {
	c.entries++
	c.events += int64(h.events)
	if c.projects == nil {
		c.projects = map[int64]projectCounts{}
	}
	of := c.projects[h.project]
	if of.entries == 0 {
		of.first = h.arrived
	}
	of.entries++
	of.events += int64(h.events)
	of.bytes += int64(h.bodySize)
	c.projects[h.project] = of
}

// sub subtracts what is gone.
func (c *counts) sub(gone counts) {
	c.entries -= gone.entries
	c.events -= gone.events
	for project, less := range gone.projects {
		of := c.projects[project]
		of.entries -= less.entries
		of.events -= less.events
		of.bytes -= less.bytes
		if c.projects[project] = of; of.entries <= 0 {
			delete(c.projects, project)
		}
	}
}

func segmentName(first, salt uint64) string { return fmt.Sprintf("%020d-%016x.zst", first, salt) }

func parseSegmentName(name string) (first, salt uint64, ok bool) {
	_, err := fmt.Sscanf(name, "%d-%x.zst", &first, &salt)
	return first, salt, err == nil && name == segmentName(first, salt)
}

// createSegment creates an empty segment whose name survives a crash.
func (j *Journal) createSegment(first uint64) (*segment, error) {
	var salt [8]byte
	_, _ = rand.Read(salt[:]) // never fails
	s := &segment{first: first, salt: binary.LittleEndian.Uint64(salt[:])}
	s.path = filepath.Join(j.dir, segmentName(first, s.salt))
	file, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	s.file = file
	if err := wholefile.SyncFolder(j.dir); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

func (s *segment) remove() {
	_ = s.file.Close()
	_ = os.Remove(s.path) // what stays is found, and forgotten again, at the next start
}

func (j *Journal) openSegments() error {
	files, err := os.ReadDir(j.dir) // sorted by name, and so by ID
	if err != nil {
		return err
	}
	for _, f := range files {
		first, salt, ok := parseSegmentName(f.Name())
		if !ok {
			continue
		}
		s := &segment{first: first, salt: salt, path: filepath.Join(j.dir, f.Name())}
		if s.file, err = os.OpenFile(s.path, os.O_RDWR, 0); err != nil {
			return err
		}
		j.segments = append(j.segments, s)
		if err := j.scan(s); err != nil {
			return fmt.Errorf("reading %s: %w", s.path, err)
		}
	}
	return nil
}

// scan counts what an earlier process left in a segment, and cuts off what follows the last whole record.
func (j *Journal) scan(s *segment) error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	s.last = s.first - 1
	sc := newScanner(s.file, s.salt, 0, info.Size())
	for {
		h, _, err := sc.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		s.last = max(s.last, h.id)
		s.waiting.add(h)
	}
	s.size = sc.off
	lost := max(0, info.Size()-s.size)
	j.lastID = max(j.lastID, s.last)
	j.nextID = max(j.nextID, s.last+1+uint64(lost)) // the IDs of lost bytes are not reused
	j.bytes += s.size
	if lost == 0 {
		return nil
	}
	return j.dropTail(s, sc, lost)
}

func (j *Journal) dropTail(s *segment, sc *scanner, lost int64) error {
	torn, err := sc.torn()
	if err != nil {
		return err
	}
	if torn {
		j.log.Warn("the event log ends in an incomplete entry, which was never acknowledged; it is left out",
			zap.String("file", s.path), zap.Int64("offset", s.size), zap.Int64("size", lost))
	} else if err := j.reportDamage(s, s.size, lost); err != nil {
		return nil //nolint:nilerr // it is logged, and the only copy stays where it is, to be found at the next start
	}
	return s.file.Truncate(s.size)
}

package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

// Forget marks the entries up to an ID as delivered: Read does not return them again, not even after a restart. It removes the segments with nothing else in
// them, so at most a quarter of a segment, 8 MiB, of a delivered log stays on disk. After an error, Read may return the entries again, after a restart at the
// latest.
func (j *Journal) Forget(ctx context.Context, upTo uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.reading.Lock()
	defer j.reading.Unlock()
	if j.isClosed() {
		return ErrClosed
	}
	return j.forgetLocked(upTo)
}

// forgetLocked does the work of Forget, and skips damaged entries as well. The caller holds reading.
func (j *Journal) forgetLocked(upTo uint64) error {
	j.mu.Lock()
	before := j.forgotten
	j.forgotten = max(before, min(upTo, j.lastID))
	j.mu.Unlock()
	err := j.skipForgotten()
	j.uncount()
	if j.forgotten == before {
		return err
	}
	if failed := j.writePosition(j.forgotten); failed != nil {
		err = errors.Join(err, failed)
	} else {
		j.forgetProgress()
	}
	j.removeForgotten()
	return err
}

// skipForgotten moves the marks of the segments to the first waiting entry.
func (j *Journal) skipForgotten() error {
	j.mu.Lock()
	segments := j.segments
	j.mu.Unlock()
	for _, s := range segments {
		waits, err := j.skipIn(s)
		if err != nil || waits {
			return err
		}
	}
	return nil
}

// skipIn moves the mark of one segment, and reports whether an entry in it still waits.
func (j *Journal) skipIn(s *segment) (bool, error) {
	j.mu.Lock()
	end, last, upTo := s.size, s.last, j.forgotten
	if last <= upTo {
		s.waiting, s.mark = counts{}, end
	}
	j.mu.Unlock()
	if last <= upTo {
		return false, nil
	}
	var gone counts
	sc := newScanner(s.file, s.salt, s.mark, end)
	for {
		h, _, err := sc.next()
		if errors.Is(err, io.EOF) { // only damage is left
			upTo, s.mark = last, end
			break
		}
		if err != nil {
			return false, err
		}
		if h.id > upTo && !s.damaged[h.id] && !j.progress.has(h) {
			j.mu.Lock()
			j.oldest = time.Unix(0, h.arrived).UTC()
			j.mu.Unlock()
			break
		}
		s.mark = sc.off
		upTo = max(upTo, h.id)
		if !j.counted.has(h) {
			gone.add(h)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forgotten = upTo
	s.waiting.sub(gone)
	if s.mark == s.size {
		s.waiting = counts{} // also those whose headers were damaged after they were counted
	}
	return upTo < s.last, nil
}

// removeForgotten removes the segments in which nothing waits, except the current one while it is small: later entries use its space.
func (j *Journal) removeForgotten() {
	for _, s := range j.takeForgotten() {
		s.remove()
	}
}

func (j *Journal) takeForgotten() (gone []*segment) {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.segments) > 0 {
		s := j.segments[0]
		if s.last > j.forgotten || s == j.active && s.size < j.segmentSize/4 {
			break
		}
		if s == j.active {
			j.active = nil
		}
		gone = append(gone, s)
		j.bytes -= s.size
		j.segments = j.segments[1:]
	}
	return gone
}

// The position is the ID up to which entries are forgotten. Its file has two places that are overwritten in turn, so a crash leaves one of them whole, and a
// full disk has room for it.
const (
	positionFile  = "delivered"
	positionPlace = 512
)

func (j *Journal) openPosition() (err error) {
	j.position, err = os.OpenFile(filepath.Join(j.dir, positionFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	b := make([]byte, 2*positionPlace)
	n, err := j.position.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	places := [2]uint64{parsePosition(b), parsePosition(b[positionPlace:])}
	if places[0] < places[1] {
		j.place = 1
	}
	j.forgotten = places[j.place]
	j.lastID, j.nextID = j.forgotten, j.forgotten+1
	if n == len(b) {
		return nil
	}
	if err := j.position.Truncate(0); err != nil {
		return err
	}
	if _, err := j.position.WriteAt(b, 0); err != nil {
		return err
	}
	return errors.Join(j.position.Sync(), wholefile.SyncFolder(j.dir))
}

func parsePosition(b []byte) uint64 {
	if crc32.Checksum(b[:8], castagnoli) != binary.LittleEndian.Uint32(b[8:]) {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (j *Journal) writePosition(id uint64) error {
	b := binary.LittleEndian.AppendUint64(nil, id)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	j.place = (j.place + 1) % 2
	if _, err := j.position.WriteAt(b, int64(j.place)*positionPlace); err != nil {
		return err
	}
	return j.position.Sync()
}

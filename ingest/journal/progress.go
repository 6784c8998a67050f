package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

// Progress says which entries are delivered.
type Progress struct {
	Last   uint64           // entries up to here are delivered, except those of projects that are behind
	Behind map[int64]uint64 // project → its entries up to here are delivered
}

// has reports whether an entry is delivered.
func (p Progress) has(h header) bool {
	if h.id > p.Last {
		return false
	}
	upTo, behind := p.Behind[h.project]
	return !behind || h.id <= upTo
}

// first returns the ID up to which all entries are delivered.
func (p Progress) first() uint64 {
	first := p.Last
	for _, upTo := range p.Behind {
		first = min(first, upTo)
	}
	return first
}

// Progress returns what is delivered, as of the last Forget or Advance.
func (j *Journal) Progress() Progress {
	j.reading.Lock()
	defer j.reading.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	p := Progress{Last: max(j.progress.Last, j.forgotten), Behind: map[int64]uint64{}}
	for project, upTo := range j.progress.Behind {
		p.Behind[project] = max(upTo, j.forgotten)
	}
	return p
}

// Advance marks entries as delivered: they are not read again, not even after a restart, and no longer wait. What p says of an entry must hold from then on: an
// entry that was delivered stays so. The space of an entry is free once all before it are delivered too. After an error, entries may be read again, after a
// restart at the latest.
func (j *Journal) Advance(ctx context.Context, p Progress) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.reading.Lock()
	defer j.reading.Unlock()
	if j.isClosed() {
		return ErrClosed
	}
	var err error
	if p.first() < p.Last {
		j.progress = Progress{p.Last, maps.Clone(p.Behind)}
		err = j.writeProgress()
	}
	return errors.Join(err, j.forgetLocked(p.first()))
}

// forgetProgress drops a progress that says no more than the position. The caller holds reading.
func (j *Journal) forgetProgress() {
	if j.progress.Last == 0 || j.progress.Last > j.forgotten {
		return
	}
	j.progress = Progress{}
	_ = os.Remove(j.progressPath()) // what stays is dropped at the next start
}

// taken is an entry that Next has returned, or skipped as damaged.
type taken struct {
	header
	in *segment
}

// uncount subtracts the entries that are delivered from what waits, if Next has taken them. The caller holds reading.
func (j *Journal) uncount() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for id, t := range j.taken {
		if id > j.forgotten && j.progress.has(t.header) {
			t.in.waiting.subOne(t.header)
		} else if id > j.forgotten {
			continue
		}
		delete(j.taken, id)
	}
	j.counted = j.progress
}

// uncountAll subtracts the entries after the position that are delivered from what waits, when the journal is opened.
func (j *Journal) uncountAll() error {
	for _, s := range j.segments {
		if s.last <= j.forgotten {
			continue
		}
		if s.first > j.progress.Last {
			break
		}
		sc := newScanner(s.file, s.salt, s.mark, s.size)
		for {
			h, _, err := sc.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("reading %s: %w", s.path, err)
			}
			if h.id > j.forgotten && j.progress.has(h) {
				s.waiting.subOne(h)
			}
		}
	}
	j.counted = j.progress
	return nil
}

// subOne subtracts an entry of a project whose earlier ones are gone too.
func (c *counts) subOne(h header) {
	var gone counts
	gone.add(h)
	c.sub(gone)
	if of, left := c.projects[h.project]; left {
		of.first = max(of.first, h.arrived)
		c.projects[h.project] = of
	}
}

// Taken is what Next returns.
type Taken struct {
	Entries []Entry
	Last    uint64          // all that was asked for up to here is in Entries
	More    <-chan struct{} // closed when entries were added since
}

// Next returns entries that are not delivered, oldest first: as many as fit into maxBytes of data, and at least one if there is one. It looks at those after
// and up to the given IDs for which wanted returns true (nil: at all of them), and does not wait for more. Damage is treated as by Read.
func (j *Journal) Next(after, upTo uint64, maxBytes int, wanted func(project int64, id uint64) bool) (Taken, error) {
	b := batch{after: after, upTo: upTo, room: int64(maxBytes), wanted: wanted}
	changed, err := j.read(&b)
	if err != nil {
		return Taken{}, err
	}
	out := Taken{Entries: b.entries, Last: b.after, More: changed}
	if !b.full && upTo != math.MaxUint64 {
		out.Last = max(out.Last, upTo)
	}
	return out, nil
}

// progressFile holds a progress while a project is behind: a checksum, and then Last and the pairs of Behind, as 64 bits each.
const progressFile = "behind"

func (j *Journal) progressPath() string { return filepath.Join(j.dir, progressFile) }

func (j *Journal) writeProgress() error {
	b := binary.LittleEndian.AppendUint64(nil, j.progress.Last)
	for _, project := range slices.Sorted(maps.Keys(j.progress.Behind)) {
		b = binary.LittleEndian.AppendUint64(b, uint64(project)) //nolint:gosec // the same bits
		b = binary.LittleEndian.AppendUint64(b, j.progress.Behind[project])
	}
	sum := binary.LittleEndian.AppendUint32(nil, crc32.Checksum(b, castagnoli))
	return wholefile.Write(j.progressPath(), bytes.NewReader(append(sum, b...)))
}

// openProgress reads what writeProgress wrote. Without it, entries are delivered again.
func (j *Journal) openProgress() error {
	b, err := os.ReadFile(j.progressPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	const sum, number = 4, 8
	if len(b) < sum+number || (len(b)-sum-number)%(2*number) != 0 || binary.LittleEndian.Uint32(b) != crc32.Checksum(b[sum:], castagnoli) {
		return j.dropProgress()
	}
	le := binary.LittleEndian
	j.progress = Progress{Last: le.Uint64(b[sum:]), Behind: map[int64]uint64{}}
	for b = b[sum+number:]; len(b) > 0; b = b[2*number:] {
		j.progress.Behind[int64(le.Uint64(b))] = le.Uint64(b[number:]) //nolint:gosec // the same bits
	}
	return nil
}

// dropProgress forgets a progress before entries get the IDs that it names: it is not of this log.
func (j *Journal) dropProgress() error {
	j.progress = Progress{}
	return errors.Join(ignoreMissing(os.Remove(j.progressPath())), wholefile.SyncFolder(j.dir))
}

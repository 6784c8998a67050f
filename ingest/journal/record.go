package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// Form is the form of the journal's files, and the newest that can be read.
const Form = 1

// A record starts with a zstd skippable frame, all numbers in little-endian order:
//
//	 0 magic of a skippable frame     24 project    52 CRC-32C of the zstd frame
//	 4 size of its content: 52        32 arrived    56 CRC-32C of the 56 bytes before
//	 8 salt of the segment            40 events
//	16 ID                             44 size of the data
//	                                  48 size of the zstd frame that follows
//
// The salt is random and part of the segment's name. After damage, the next record is found by it. So bytes that a client sent never
// pass for a record.
const (
	headerSize = 60
	magic      = 0x184D2A5C
	prefixSize = 16 // magic, size and salt: the same in all headers of a segment
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type header struct {
	id       uint64
	project  int64
	arrived  int64 // Unix, in nanoseconds
	events   uint32
	dataSize uint32
	bodySize uint32
	bodySum  uint32
}

func (h header) size() int64 { return headerSize + int64(h.bodySize) }

func prefix(salt uint64) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, prefixSize), magic)
	b = binary.LittleEndian.AppendUint32(b, headerSize-8)
	return binary.LittleEndian.AppendUint64(b, salt)
}

func (h header) append(b []byte, salt uint64) []byte {
	start := len(b)
	b = append(b, prefix(salt)...)
	b = binary.LittleEndian.AppendUint64(b, h.id)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.project)) //nolint:gosec // the same bits
	b = binary.LittleEndian.AppendUint64(b, uint64(h.arrived)) //nolint:gosec // the same bits
	b = binary.LittleEndian.AppendUint32(b, h.events)
	b = binary.LittleEndian.AppendUint32(b, h.dataSize)
	b = binary.LittleEndian.AppendUint32(b, h.bodySize)
	b = binary.LittleEndian.AppendUint32(b, h.bodySum)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// parseHeader reads the header at the start of b, and reports whether it is there and undamaged.
func parseHeader(b, prefix []byte) (header, bool) {
	if len(b) < headerSize || !bytes.HasPrefix(b, prefix) {
		return header{}, false
	}
	le := binary.LittleEndian
	if le.Uint32(b[56:]) != crc32.Checksum(b[:56], castagnoli) {
		return header{}, false
	}
	h := header{
		id: le.Uint64(b[16:]), project: int64(le.Uint64(b[24:])), arrived: int64(le.Uint64(b[32:])), //nolint:gosec // the same bits
		events: le.Uint32(b[40:]), dataSize: le.Uint32(b[44:]), bodySize: le.Uint32(b[48:]), bodySum: le.Uint32(b[52:]),
	}
	return h, h.dataSize <= maxData
}

// scanner walks the headers of a segment.
type scanner struct {
	r        io.ReaderAt
	prefix   []byte
	off, end int64 // where the next record should start; the end of the segment

	buf   []byte
	bufAt int64
}

func newScanner(r io.ReaderAt, salt uint64, off, end int64) *scanner {
	return &scanner{r: r, prefix: prefix(salt), off: off, end: end}
}

// next returns the next whole header at or after off and its offset, and moves off to the end of its record. If the header is not where the previous record
// ended, the bytes in between are damaged. At the end of the segment the error is io.EOF, and off stays.
func (s *scanner) next() (h header, at int64, err error) {
	for at = s.off; ; {
		b, err := s.window(at)
		if err != nil {
			return header{}, 0, err
		}
		i := bytes.Index(b, s.prefix)
		switch {
		case len(b) < headerSize:
			return header{}, 0, io.EOF
		case i < 0:
			at += int64(len(b) - prefixSize + 1)
			continue
		case len(b)-i < headerSize && at+int64(len(b)) < s.end:
			at += int64(i) // the rest of the header is not in the window
			continue
		}
		at += int64(i)
		if h, ok := parseHeader(b[i:], s.prefix); ok && at+h.size() <= s.end {
			s.off = at + h.size()
			return h, at, nil
		}
		at++
	}
}

const windowSize = 64 << 10

// window returns the bytes from at on: at least as many as a header has, if the segment has them.
func (s *scanner) window(at int64) ([]byte, error) {
	want := min(headerSize, s.end-at)
	if have := s.bufAt + int64(len(s.buf)) - at; at >= s.bufAt && have >= want {
		return s.buf[at-s.bufAt:], nil
	}
	if cap(s.buf) == 0 {
		s.buf = make([]byte, windowSize)
	}
	s.buf, s.bufAt = s.buf[:max(0, min(windowSize, s.end-at))], at
	n, err := s.r.ReadAt(s.buf, at)
	s.buf = s.buf[:n]
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return s.buf, nil
}

// torn reports whether the bytes from off to the end are what a crash leaves of the last write, rather than damage: too few for a
// header, a whole header with too few bytes after it, or zeros.
func (s *scanner) torn() (bool, error) {
	rest := make([]byte, s.end-s.off)
	if _, err := s.r.ReadAt(rest, s.off); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if _, whole := parseHeader(rest, s.prefix); whole {
		return true, nil
	}
	return len(rest) < headerSize || len(bytes.Trim(rest, "\x00")) == 0, nil
}

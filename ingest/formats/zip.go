package formats

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// maxZipFiles is how many files a ZIP file may have: their list is in memory.
const maxZipFiles = 50_000

// zipFiles reads the files in a ZIP file, one after the other.
type zipFiles struct {
	r       *Reader
	left    []*zip.File
	name    string
	current source
	close   func() error
	closers int // number of closers that the reader had before this file
}

// maxDirectory is how many bytes are read to get the list of files: in memory, each file takes several times the bytes that it has in the list.
const maxDirectory = 8 << 20

var errDirectory = fmt.Errorf("the ZIP file has too many files; it can have %d, with a list of %d MiB", maxZipFiles, maxDirectory>>20)

// directory is a ZIP file whose list of files is being read.
type directory struct {
	io.ReaderAt

	left int64 // bytes that may still be read
}

func (d *directory) ReadAt(into []byte, at int64) (int, error) {
	if d.left -= int64(len(into)); d.left < 0 {
		return 0, errDirectory
	}
	return d.ReaderAt.ReadAt(into, at) // io.ReaderAt: callers compare the error
}

// checkDirectory refuses a ZIP file that claims to have too many files, because the library makes room for as many. Only the end record for large files (ZIP64)
// can claim so many.
func checkDirectory(file io.ReaderAt, size int64) error {
	const (
		endSize, locatorSize, largeSize = 22, 20, 56
		end, locator                    = "PK\x05\x06", "PK\x06\x07"
		most                            = 65 << 10
	)
	tail := make([]byte, min(size, most+locatorSize))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	at := bytes.LastIndex(tail[:max(len(tail)-endSize+len(end), 0)], []byte(end)) - locatorSize
	if at < 0 || !bytes.HasPrefix(tail[at:], []byte(locator)) {
		return nil
	}
	large := make([]byte, largeSize)
	if _, err := file.ReadAt(large, int64(binary.LittleEndian.Uint64(tail[at+8:]))); err != nil { //nolint:gosec // a negative one is refused
		return fmt.Errorf("the ZIP file is damaged or cut off: %w", err)
	}
	if binary.LittleEndian.Uint64(large[32:]) > maxZipFiles {
		return errDirectory
	}
	return nil
}

func (r *Reader) openZIP(file io.ReaderAt, size int64) (source, error) {
	if err := checkDirectory(file, size); err != nil {
		return nil, err
	}
	limited := &directory{file, maxDirectory}
	archive, err := zip.NewReader(limited, size)
	limited.left = math.MaxInt64
	if errors.Is(err, errDirectory) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("the ZIP file is damaged or cut off: %w", err)
	}
	if len(archive.File) > maxZipFiles {
		return nil, errDirectory
	}
	z := &zipFiles{r: r}
	for _, f := range archive.File {
		base := path.Base(f.Name)
		if f.Name == "[Content_Types].xml" {
			return nil, unknownFormat("an Excel or Word document: save it as CSV")
		}
		if f.FileInfo().IsDir() || strings.HasPrefix(f.Name, "__MACOSX/") || strings.HasPrefix(base, ".") {
			continue
		}
		z.left = append(z.left, f)
	}
	if overlap(z.left) {
		return nil, errors.New("the ZIP file is damaged, or made to harm: files in it overlap")
	}
	return z, nil
}

// overlap reports whether files share bytes of the ZIP file: a small one could contain any amount that way. A file that is not where the list says fails when
// it is read.
func overlap(files []*zip.File) bool {
	type part struct{ from, to int64 }
	parts := make([]part, 0, len(files))
	for _, f := range files {
		if from, err := f.DataOffset(); err == nil {
			parts = append(parts, part{from, from + int64(f.CompressedSize64)}) //nolint:gosec // below
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.from, b.from) })
	for i, p := range parts {
		if p.to < p.from || i > 0 && p.from < parts[i-1].to {
			return true
		}
	}
	return false
}

func (z *zipFiles) next() (record.Record, error) {
	for {
		if z.current == nil {
			if len(z.left) == 0 {
				return record.Record{}, io.EOF
			}
			if err := z.open(); err != nil {
				return record.Record{}, z.wrapFile(err)
			}
			if z.current == nil {
				continue
			}
		}
		rec, err := z.current.next()
		switch {
		case err == nil, errors.Is(err, errSkip):
			return rec, err // the caller compares it
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			if err := z.done(); err != nil {
				return rec, z.wrapFile(err)
			}
		default:
			return rec, z.wrapFile(err)
		}
	}
}

// open opens the next file. It leaves nothing open for a file without records.
func (z *zipFiles) open() error {
	f := z.left[0]
	z.left, z.name, z.closers = z.left[1:], f.Name, len(z.r.closers)
	in, err := f.Open()
	if err != nil {
		return err
	}
	z.close = in.Close
	z.current, err = z.r.openStream(&unfolding{in, z.r}, f.Name, 1)
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return z.done()
	}
	return err
}

// done closes a file that was read.
func (z *zipFiles) done() error {
	z.current = nil
	for len(z.r.closers) > z.closers {
		last := len(z.r.closers) - 1
		err := z.r.closers[last]()
		if z.r.closers = z.r.closers[:last]; err != nil {
			return err
		}
	}
	return z.close()
}

// wrapFile adds the file to an error.
func (z *zipFiles) wrapFile(err error) error {
	name := shortened(z.name)
	if bad, ok := errors.AsType[*record.Error](err); ok {
		return &record.Error{Line: bad.Line, Reason: fmt.Errorf("of %s: %w", name, bad.Reason)}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) {
		return fmt.Errorf("%s in the ZIP file is damaged or cut off: %w", name, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return fmt.Errorf("%s in the ZIP file: %w", name, err)
}

package formats

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// maxZipFiles is how many files a ZIP file may have: the list of them is in memory.
const maxZipFiles = 50_000

// zipFiles reads the files in a ZIP file, one after the other.
type zipFiles struct {
	r       *Reader
	left    []*zip.File
	name    string
	current source
	close   func() error
	closers int // how many the reader had before this file
}

func (r *Reader) openZIP(file io.ReaderAt, size int64) (source, error) {
	archive, err := zip.NewReader(file, size)
	if err != nil {
		return nil, fmt.Errorf("the ZIP file is damaged or cut off: %w", err)
	}
	if len(archive.File) > maxZipFiles {
		return nil, fmt.Errorf("the ZIP file has %d files; it can have %d", len(archive.File), maxZipFiles)
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
	return z, nil
}

func (z *zipFiles) next() (record.Record, error) {
	for {
		if z.current == nil {
			if len(z.left) == 0 {
				return record.Record{}, io.EOF
			}
			if err := z.open(); err != nil {
				return record.Record{}, z.said(err)
			}
			if z.current == nil {
				continue
			}
		}
		rec, err := z.current.next()
		switch {
		case err == nil, errors.Is(err, errSkip):
			return rec, err //nolint:wrapcheck // the reader knows it
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			if err := z.done(); err != nil {
				return rec, z.said(err)
			}
		default:
			return rec, z.said(err)
		}
	}
}

// open opens the next file. One without records leaves nothing open.
func (z *zipFiles) open() error {
	f := z.left[0]
	z.left, z.name, z.closers = z.left[1:], f.Name, len(z.r.closers)
	if f.UncompressedSize64 > freeBytes && f.UncompressedSize64/maxRatio > f.CompressedSize64 {
		return fmt.Errorf("it unfolds to more than %d times its size", maxRatio)
	}
	in, err := f.Open()
	if err != nil {
		return err //nolint:wrapcheck // said adds the file
	}
	z.close = in.Close
	z.current, err = z.r.openStream(in, f.Name, 1)
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
	return z.close() //nolint:wrapcheck // said adds the file
}

// said adds the file to an error.
func (z *zipFiles) said(err error) error {
	name := shortened(z.name)
	if bad, ok := errors.AsType[*record.Error](err); ok {
		return &record.Error{Line: bad.Line, Reason: fmt.Errorf("of %s: %w", name, bad.Reason)}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) {
		return fmt.Errorf("%s in the ZIP file is damaged or cut off: %w", name, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return fmt.Errorf("%s in the ZIP file: %w", name, err)
}

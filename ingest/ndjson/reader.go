// Package ndjson reads records from lines of JSON.
package ndjson

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

const maxLine = 8 << 20 // bytes of one line

var errLongLine = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// Reader reads records from NDJSON, plain or gzipped. A line that cannot be used is a *record.Error.
type Reader struct {
	in     io.Reader
	lines  *bufio.Reader // nil before the first line
	line   int           // how many were read
	err    error         // the end
	parser record.Parser
}

// NewReader returns a reader of records from in.
func NewReader(in io.Reader) *Reader { return &Reader{in: in} }

// Read returns the next record, and io.EOF after the last. An empty line is none, but is counted.
func (r *Reader) Read() (record.Record, error) {
	for r.err == nil {
		line, err := r.next()
		long := errors.Is(err, errLongLine)
		if err != nil && !long {
			r.err = err
		}
		if len(line) == 0 && !long {
			if err == nil {
				r.line++
			}
			continue
		}
		r.line++
		if err != nil && !errors.Is(err, io.EOF) {
			return record.Record{}, &record.Error{Line: r.line, Reason: err}
		}
		parsed, err := r.parser.Parse(line)
		if err != nil {
			return record.Record{}, &record.Error{Line: r.line, Reason: err}
		}
		parsed.Line = r.line
		return parsed, nil
	}
	switch {
	case errors.Is(r.err, io.EOF):
		return record.Record{}, io.EOF
	case r.lines == nil:
		return record.Record{}, fmt.Errorf("reading the import: %w", r.err)
	}
	return record.Record{}, fmt.Errorf("reading line %d of the import: %w", r.line+1, r.err)
}

// next reads a line without its end. The last line may end without newline; then it comes with io.EOF. Of a
// line that is too long it returns errLongLine and goes on after it.
func (r *Reader) next() ([]byte, error) {
	if r.lines == nil {
		text, err := uncompressed(r.in)
		if err != nil {
			return nil, err
		}
		r.lines = bufio.NewReaderSize(text, 256<<10)
	}
	var line []byte
	tooLong := false
	for {
		part, err := r.lines.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > maxLine; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case tooLong && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLongLine
		default:
			return bytes.TrimSpace(line), err
		}
	}
}

// uncompressed knows gzip by its first bytes.
func uncompressed(in io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(in, 64<<10)
	magic, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return buffered, nil
	}
	return gzip.NewReader(buffered)
}

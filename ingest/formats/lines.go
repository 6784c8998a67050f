package formats

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

const (
	maxLine = 8 << 20 // bytes of one line
	// maxOwnLine is that of a line of this product: events that were captured and set aside can be imported, with what capture added to them.
	maxOwnLine = 33 << 20
)

var errLongLine = errors.New("the line is too long")

// lines splits a text into lines that are not empty.
type lines struct {
	in   *textReader
	most int   // bytes of a line
	line int   // how many were read
	err  error // the end
}

// next returns the next line without its end and the blanks around it. The caller owns the line. For a line that is too long it returns a *record.Error, and
// goes on after it.
func (l *lines) next() ([]byte, error) {
	for l.err == nil {
		text, err := l.read()
		long := errors.Is(err, errLongLine)
		if err != nil && !long {
			l.err = err
		}
		ended := errors.Is(err, io.EOF)
		if l.err != nil && !ended {
			break // the line is incomplete
		}
		if !ended || len(text) > 0 {
			l.line++
		}
		switch {
		case long:
			return nil, &record.Error{Line: l.line, Reason: fmt.Errorf("the line is longer than %d MiB", l.most>>20)}
		case len(text) > 0:
			return text, nil
		}
	}
	if errors.Is(l.err, io.EOF) && !errors.Is(l.err, io.ErrUnexpectedEOF) {
		return nil, io.EOF
	}
	return nil, fmt.Errorf("reading line %d of the import: %w", l.line+1, l.err)
}

func (l *lines) read() ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := l.in.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > l.most; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case tooLong && (err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)):
			return nil, errLongLine
		default:
			return bytes.TrimSpace(line), err
		}
	}
}

// ownLines reads the lines of this product.
type ownLines struct {
	lines

	parser *record.Parser
}

func (o *ownLines) next() (record.Record, error) {
	text, err := o.lines.next()
	if err != nil {
		return record.Record{}, err
	}
	r, err := o.parser.Parse(text)
	if err != nil {
		return record.Record{}, &record.Error{Line: o.line, Reason: err}
	}
	r.Line = o.line
	return r, nil
}

// objectLines reads lines of JSON of another product.
type objectLines struct {
	lines

	r       *Reader
	convert func(*fields) (record.Record, error)
}

func (o *objectLines) next() (record.Record, error) {
	text, err := o.lines.next()
	if err != nil {
		return record.Record{}, err
	}
	var f fields
	if f.all, f.properties, err = o.r.parser.Fields(text); err != nil {
		return record.Record{}, &record.Error{Line: o.line, Reason: err}
	}
	return o.r.converted(&f, o.convert, o.line, text)
}

// converted makes a record from fields.
func (r *Reader) converted(f *fields, convert func(*fields) (record.Record, error), line int, text []byte) (record.Record, error) {
	f.known = f.room[:0]
	rec, err := convert(f)
	switch {
	case errors.Is(err, errSkip):
		return rec, err
	case f.err != nil:
		err = f.err
	}
	if err != nil {
		return record.Record{}, &record.Error{Line: line, Reason: err}
	}
	f.rest(func(name string) { r.unknown.add(name, func() []string { return f.known }) })
	rec.Line, rec.Source = line, text
	return rec, nil
}

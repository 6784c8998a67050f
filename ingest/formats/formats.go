// Package formats reads records from files: lines of JSON, exports of other products, CSV and Parquet, compressed or not. It detects the format from the
// content.
package formats

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// Format is a file format.
type Format string

// The formats.
const (
	NDJSON         Format = "ndjson"          // this product's own lines
	PostHog        Format = "posthog"         // batch exports of PostHog, events and persons, as lines of JSON
	Mixpanel       Format = "mixpanel"        // the raw export of events
	MixpanelPeople Format = "mixpanel-people" // profiles, as /engage returns them
	Amplitude      Format = "amplitude"       // the export of events
	CSV            Format = "csv"             // with a header
	Parquet        Format = "parquet"         // of flat columns, such as PostHog's batch exports
)

// All lists the formats.
var All = []Format{NDJSON, PostHog, Mixpanel, MixpanelPeople, Amplitude, CSV, Parquet}

const takes = "an import takes NDJSON, batch exports of PostHog (JSON lines or Parquet), exports of Mixpanel and Amplitude, CSV with a header, and Parquet, " +
	"each plain or compressed with gzip or zstd, and several in a ZIP file"

// ParseFormat reads the name of a format. An empty name means none.
func ParseFormat(name string) (Format, error) {
	if name == "" || slices.Contains(All, Format(name)) {
		return Format(name), nil
	}
	names := make([]string, len(All))
	for i, f := range All {
		names[i] = string(f)
	}
	return "", fmt.Errorf("unknown format %s (want one of %s)", record.Quoted(name), strings.Join(names, ", "))
}

// Options says how a file is read.
type Options struct {
	// The format. Default: it is detected from the content.
	Format Format
	// The name of the file, if it has one. It identifies a compression that has no magic number: .br is Brotli.
	Name string
	// The field that each column of CSV or Parquet becomes. Default: the field with its name.
	Map Mapping
	// Opens a file to keep what must be read from its end: Parquet and ZIP. The reader closes and removes it. Default: such files can only be read if the input is
	// an *os.File.
	Spool func() (*os.File, error)
	// How many bytes such files may have together while they are open. Default: any number.
	MaxSpool int64
	// Called while compressed data is read, which may take long without a record. An error ends the reading. Default: it goes on.
	Stopped func() error
}

// Reader reads records from a file. For a line or row that cannot be used it returns a *record.Error; there is more to read after it.
type Reader struct {
	options Options
	in      io.Reader
	source  source // nil before the first record
	err     error  // why the reading has ended
	closers []func() error
	spooled int64 // bytes of the kept files that are open
	sent    func() int64
	// Bytes that compressed data unfolded to, including the files in a ZIP file and what those unfold to.
	unfolded int64
	summary  Summary
	unknown  unknownFields
	parser   record.Parser
}

// source yields the records of one file in one format. It has ended after any error but *record.Error and errSkip.
type source interface {
	next() (record.Record, error)
}

// Summary describes what a reader has met.
type Summary struct {
	Format  Format    // of the first file with records; empty before
	Unknown []Unknown // fields that became nothing, most frequent first
	More    int       // number of such fields that are not listed
	Columns []string  // columns of CSV and Parquet that became properties because they are not fields
	Skipped int       // lines left out on purpose, such as deleted persons
}

// New returns a reader of a file.
func New(in io.Reader, options Options) *Reader {
	r := &Reader{options: options, in: in}
	r.parser.Unknown = func(name string) { r.unknown.add(name, record.FieldNames) }
	return r
}

// Summary describes what was met so far.
func (r *Reader) Summary() Summary {
	s := r.summary
	s.Unknown, s.More = r.unknown.list()
	return s
}

// Err returns why nothing more can be read; nil before the end, and for a file that was read to its end.
func (r *Reader) Err() error {
	if errors.Is(r.err, io.EOF) && !errors.Is(r.err, io.ErrUnexpectedEOF) {
		return nil
	}
	return r.err
}

// Close releases what the reader holds. It leaves the input open.
func (r *Reader) Close() error {
	var errs []error
	for _, closer := range slices.Backward(r.closers) {
		errs = append(errs, closer())
	}
	r.closers = nil
	return errors.Join(errs...)
}

// Read returns the next record, and io.EOF after the last.
func (r *Reader) Read() (record.Record, error) {
	for r.err == nil {
		if r.source == nil {
			if r.source, r.err = r.open(); r.err != nil {
				r.err = wrapped(r.err, "reading the import")
				break
			}
		}
		rec, err := r.source.next()
		var bad *record.Error
		switch {
		case err == nil, errors.As(err, &bad):
			return rec, err
		case errors.Is(err, errSkip):
			r.summary.Skipped++
		default:
			r.err = err
		}
	}
	return record.Record{}, r.err
}

// errSkip marks a line that is left out on purpose.
var errSkip = errors.New("left out")

// wrapped adds what was being done to an error, except to io.EOF at the end.
func wrapped(err error, doing string) error {
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// open examines the start of the input and returns a source that reads it.
func (r *Reader) open() (source, error) {
	if file, size, ok := regular(r.in); ok {
		r.sent = func() int64 { return size }
		kind, err := kindOf(file)
		if err != nil {
			return nil, err
		}
		switch kind {
		case zipFile:
			return r.openZIP(file, size)
		case parquetFile:
			return r.openParquet(file, size)
		case other:
		}
	}
	in := r.in
	if r.sent == nil {
		counted := &counter{in: in}
		in, r.sent = counted, func() int64 { return counted.n }
	}
	return r.openStream(in, r.options.Name, 0)
}

// unfold counts bytes that data unfolded to. All together must be in proportion to what was sent.
func (r *Reader) unfold(n int64) error { return r.inProportion(&r.unfolded, n) }

// inProportion adds n to a sum of bytes, which must be in proportion to what was sent.
func (r *Reader) inProportion(sum *int64, n int64) error {
	if *sum += n; *sum > freeBytes && *sum > maxRatio*r.sent() {
		return fmt.Errorf("the file decompresses to more than %d times its size", maxRatio)
	}
	if r.options.Stopped != nil {
		return r.options.Stopped()
	}
	return nil
}

// openStream opens the content of a stream: compressed data, or text. Parquet and ZIP are spooled.
func (r *Reader) openStream(in io.Reader, name string, depth int) (source, error) {
	text, err := r.uncompressed(in, name)
	if err != nil {
		return nil, err
	}
	r.closers = append(r.closers, func() error { text.close(); return nil })
	start, err := text.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrNoProgress) {
		if len(start) == 0 {
			return nil, err
		}
	}
	switch kindOfStart(start) {
	case zipFile, parquetFile:
		if depth > 0 && kindOfStart(start) == zipFile {
			return nil, errors.New("there is a ZIP file in the ZIP file: import it by itself")
		}
		file, size, err := r.spool(text)
		if err != nil {
			return nil, err
		}
		if kindOfStart(start) == zipFile {
			return r.openZIP(file, size)
		}
		return r.openParquet(file, size)
	case other:
	}
	return r.openText(text, start)
}

// openText opens text in its format.
func (r *Reader) openText(text *textReader, start []byte) (source, error) {
	if err := readable(start); err != nil {
		return nil, err
	}
	if start, _ = text.skipBOM(start); len(strings.TrimSpace(string(start))) == 0 && len(start) < sniffed {
		return nil, io.EOF
	}
	format := r.options.Format
	if format == "" {
		var err error
		if format, err = formatOf(start); err != nil {
			return nil, err
		}
	}
	if r.summary.Format == "" {
		r.summary.Format = format
	}
	if len(r.options.Map) > 0 && format != CSV {
		return nil, fmt.Errorf("only CSV and Parquet columns can be mapped; this file is %s", format)
	}
	switch format {
	case CSV:
		return r.openCSV(text)
	case Parquet:
		return nil, errors.New("the file is not Parquet: it does not begin with PAR1")
	case PostHog:
		return &objectLines{lines: lines{in: text, most: maxLine}, r: r, convert: postHog}, nil
	case Mixpanel:
		return &objectLines{lines: lines{in: text, most: maxLine}, r: r, convert: mixpanel}, nil
	case MixpanelPeople:
		return &objectLines{lines: lines{in: text, most: maxLine}, r: r, convert: mixpanelPeople}, nil
	case Amplitude:
		return &objectLines{lines: lines{in: text, most: maxLine}, r: r, convert: amplitude}, nil
	case NDJSON:
	}
	return &ownLines{lines: lines{in: text, most: maxOwnLine}, parser: &r.parser}, nil
}

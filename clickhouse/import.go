package clickhouse

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// maxGroupTypes is how many group types a project can have.
const maxGroupTypes = 5

const (
	batchLines = 10_000
	batchBytes = 16 << 20
	maxLine    = 8 << 20 // bytes of one line
	maxBad     = 100     // bad lines that are told one by one
)

// ImportOptions says whose events are imported, and what is already known about them.
type ImportOptions struct {
	Project int64
	// Learn the types of properties that have none yet.
	LearnTypes bool
	// The time of the import: the creation time of persons and groups without events.
	Now time.Time
	// Properties whose type is known and stays as it is.
	KnownTypes []LearnedProperty
	// How many properties may have a type, known ones among them; 0: any number.
	MaxTypes int
	// The cohorts of the project, which lines can put people into.
	Cohorts []int64
	// Names of the project's group types. An import adds types that it finds, up to five.
	GroupTypes []GroupType
	// Called before each batch, which is written before done is called. Default: batches do not wait.
	Turn func(context.Context) (done func(), err error)
}

// ImportReport says what became of the lines.
type ImportReport struct {
	Events     int  // events that are in ClickHouse now, duplicates included
	Duplicates int  // of these, events that were there before
	Persons    int  // lines that describe a person
	Groups     int  // lines that describe a group
	Cohorts    int  // lines that put people into a cohort
	Members    int  // people that are in a cohort now and were not before
	LeftOut    int  // properties for which their person or group had no room: see MaxNames
	LeftOutAt  int  // the first line that has one; 0 for none
	Untyped    bool // properties were found beyond ImportOptions.MaxTypes, and have no type
	Bad        int  // lines that were left out
	BadLines   []BadLine
	Learned    []LearnedProperty // types that were not known before
	GroupTypes []GroupType       // all group types of the project, in the order of their index
}

// BadLine is a line that was left out. Lines are counted from 1.
type BadLine struct {
	Line   int
	Reason string
}

// LearnedProperty is a property with its type.
type LearnedProperty struct {
	Scope          string // event, person or group
	GroupTypeIndex int    // for groups
	Name           string
	Type           string // String, Numeric, Boolean or DateTime
}

// GroupType is a kind of groups, such as organization.
type GroupType struct {
	Name  string
	Index int
}

// Import reads NDJSON lines, plain or gzipped, and writes what they say: events, persons, groups and members of cohorts (the form of
// the lines is in the operator's documentation). It streams, in batches. A bad line is left out and reported.
//
// Importing the same lines again adds nothing: an event without uuid gets one from its content, and from how often
// the same line stands before it in its batch; events whose uuid is there already are passed over. An import that
// broke off is completed by running it again.
//
// Imports into one project wait for each other. The report is valid also with an error: it says what was done
// before.
func (c *Client) Import(ctx context.Context, options ImportOptions, in io.Reader) (ImportReport, error) {
	if options.Project <= 0 {
		return ImportReport{}, fmt.Errorf("BUG: an import without a project: %d", options.Project)
	}
	if options.Now.IsZero() {
		return ImportReport{}, errors.New("BUG: an import without the time of the import")
	}
	done, err := c.lockProject(ctx, options.Project)
	if err != nil {
		return ImportReport{}, fmt.Errorf("waiting for another import into the project: %w", err)
	}
	defer done()
	i, err := c.newImporter(ctx, options)
	if err != nil {
		return ImportReport{}, err
	}
	text, err := uncompressed(in)
	if err != nil {
		return i.result(), fmt.Errorf("reading the import: %w", err)
	}
	err = i.run(ctx, text)
	return i.result(), err
}

// lockProject lets one import at a time into a project: each reads the state of persons and writes it back.
func (c *Client) lockProject(ctx context.Context, project int64) (unlock func(), err error) {
	c.importsMu.Lock()
	lock, ok := c.imports[project]
	if !ok {
		lock = make(chan struct{}, 1)
		c.imports[project] = lock
	}
	c.importsMu.Unlock()
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// importer is one import under way.
type importer struct {
	client  *Client
	options ImportOptions
	layout  importLayout
	report  ImportReport
	lines   int
	groups  map[string]int // index by name of the group type
	types   typeLearner
	state   *importState
	members membership
	refused map[int]bool // lines that the server would not take
}

func (c *Client) newImporter(ctx context.Context, options ImportOptions) (*importer, error) {
	columns, err := c.PhysicalColumns(ctx)
	if err != nil {
		return nil, err
	}
	layout, err := newImportLayout(columns)
	if err != nil {
		return nil, err
	}
	i := &importer{
		client:  c,
		options: options,
		layout:  layout,
		groups:  map[string]int{},
		types:   newTypeLearner(options.KnownTypes, options.LearnTypes, options.MaxTypes),
		state:   newImportState(),
		refused: map[int]bool{},
	}
	for _, t := range options.GroupTypes {
		i.groups[t.Name] = t.Index
	}
	return i, nil
}

func (i *importer) result() ImportReport {
	report := i.report
	report.Learned, report.Untyped = i.types.learned(), i.types.full
	report.GroupTypes = nil
	for name, index := range i.groups {
		report.GroupTypes = append(report.GroupTypes, GroupType{Name: name, Index: index})
	}
	slices.SortFunc(report.GroupTypes, func(a, b GroupType) int { return a.Index - b.Index })
	return report
}

func (i *importer) run(ctx context.Context, text io.Reader) error {
	lines := bufio.NewReaderSize(text, 256<<10)
	var batch importBatch
	for {
		line, err := readLine(lines)
		if len(line) > 0 || errors.Is(err, errLongLine) {
			i.lines++
			i.parse(&batch, line, err)
		} else if err == nil {
			i.lines++ // an empty line is none, but is counted
		}
		end := err != nil && !errors.Is(err, errLongLine)
		if end && !errors.Is(err, io.EOF) {
			return errors.Join(fmt.Errorf("reading line %d of the import: %w", i.lines+1, err), i.flush(ctx, &batch))
		}
		if end || len(batch.lines) >= batchLines || batch.bytes >= batchBytes {
			if err := i.flush(ctx, &batch); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

func (i *importer) parse(batch *importBatch, line []byte, err error) {
	if err != nil && !errors.Is(err, io.EOF) {
		i.bad(i.lines, err)
		return
	}
	parsed, err := parseImportLine(line)
	if err != nil {
		i.bad(i.lines, err)
		return
	}
	parsed.number = i.lines
	if parsed.kind == eventLine && !parsed.hasUUID {
		parsed.uuid = batch.eventUUID(i.options.Project, line)
	}
	batch.lines = append(batch.lines, parsed)
	batch.bytes += len(line)
}

func (i *importer) bad(line int, reason error) {
	i.report.Bad++
	if len(i.report.BadLines) < maxBad {
		i.report.BadLines = append(i.report.BadLines, BadLine{Line: line, Reason: reason.Error()})
	}
}

// flush writes a batch and empties it.
func (i *importer) flush(ctx context.Context, batch *importBatch) error {
	if len(batch.lines) == 0 {
		return nil
	}
	if err := i.inTurn(ctx, batch.lines); err != nil {
		return fmt.Errorf("importing lines %d to %d: %w", batch.lines[0].number, batch.lines[len(batch.lines)-1].number, err)
	}
	batch.lines, batch.bytes = batch.lines[:0], 0
	clear(batch.seen)
	return nil
}

// inTurn writes lines when it is their turn.
func (i *importer) inTurn(ctx context.Context, lines []importLine) error {
	if i.options.Turn == nil {
		return i.write(ctx, lines)
	}
	done, err := i.options.Turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	return i.write(ctx, lines)
}

// importBatch is what goes to ClickHouse at once.
type importBatch struct {
	lines []importLine
	bytes int
	seen  map[uuid.UUID]int // how often a line of this batch came before
}

// eventUUID is the uuid of an event that has none. A line that stands in the batch again is another event.
func (b *importBatch) eventUUID(project int64, line []byte) uuid.UUID {
	id := eventUUID(project, line)
	again := b.seen[id]
	if b.seen == nil {
		b.seen = map[uuid.UUID]int{}
	}
	b.seen[id]++
	if again == 0 {
		return id
	}
	return eventUUID(project, fmt.Appendf(nil, "%s #%d", line, again))
}

var errLongLine = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// readLine reads a line without its end. The last line may end without newline; then it comes with io.EOF. Of a
// line that is too long it returns errLongLine and goes on behind it.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := in.ReadSlice('\n')
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

// uncompressed tells gzip by its first bytes.
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

// groupIndex gives the index of a group type. A new name takes the next free one; there are five.
func (i *importer) groupIndex(name string) (int, bool) {
	if index, ok := i.groups[name]; ok {
		return index, true
	}
	taken := slices.Collect(maps.Values(i.groups))
	for index := range maxGroupTypes {
		if !slices.Contains(taken, index) {
			i.groups[name] = index
			return index, true
		}
	}
	return 0, false
}

// quotedTrim shortens a text for a reason.
func quotedTrim(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

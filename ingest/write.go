package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// row is a row for one table.
type row struct {
	line   int
	key    string // identifies the content: rows with the same key have the same content
	values []any  // by column
}

// row makes a row that begins with the columns that all tables have.
func (s *store) row(line int, key string, values ...any) row {
	return row{line, key, append([]any{s.project, s.written, uint64(0)}, values...)}
}

// block is rows for one table.
type block struct {
	table   string
	columns []string
	rows    []row
	// Times in the hours of the events for which these rows change the person (overrides) or its creation time (persons), except events without a profile; nil if
	// they are not known.
	moved []time.Time
}

// newBlock makes a block of rows that begin with the columns that all tables have.
func newBlock(table string, columns []string, rows []row) block {
	return block{table: table, columns: append([]string{physical.Project, "_timestamp", "_offset"}, columns...), rows: rows}
}

// eventRow is the row of an event, with what it depends on.
type eventRow struct {
	row
	person eventPerson
	groups [physical.GroupTypes]*group
	merges bool
}

// unsettled reports whether the batch changes what the row was made from, or the row changes what other rows are made from.
func (e *eventRow) unsettled() bool {
	changed := func(p *person) bool { return p != nil && p.changed }
	if e.merges || e.person.name.changed || changed(e.person.name.person) || changed(e.person.person) {
		return true
	}
	for _, g := range e.groups {
		if g != nil && g.changed {
			return true
		}
	}
	return false
}

var eventColumns = func() []string {
	columns := []string{
		"uuid", "event", "properties", "timestamp", "distinct_id", "elements_chain", "created_at", "person_id", "person_created_at",
		"person_properties", "person_mode", "$session_id", "$window_id",
	}
	for index := range physical.GroupTypes {
		n := strconv.Itoa(index)
		columns = append(columns, "$group_"+n, "group"+n+"_properties", "group"+n+"_created_at")
	}
	return columns
}()

// Values that most rows have.
var (
	noTime   any = time.Unix(0, 0).UTC()
	noObject any = "{}"
	noText   any = ""
)

// eventRow makes the row of an event of a person, and of groups by the index of their type.
func (s *session) eventRow(e *event, p eventPerson, groups [physical.GroupTypes]string) eventRow {
	session, _ := e.Properties.Get("$session_id").Text()
	window, _ := e.Properties.Get("$window_id").Text()
	createdAt, properties := noTime, noObject
	if p.person != nil {
		createdAt = p.person.createdAt
		if e.PersonProperties != nil {
			properties = e.PersonProperties.JSON()
		} else {
			properties = p.person.jsonWith(e)
		}
	}
	values := make([]any, 0, 3+len(eventColumns))
	values = append(values, s.store.project, s.store.written, uint64(0),
		e.UUID, e.Event, e.Properties.JSON(), e.Timestamp, e.DistinctID, e.Elements, s.arrival(e.Record), p.id, createdAt,
		properties, p.mode, session, window)
	out := eventRow{person: p}
	for index, key := range groups {
		if key == "" {
			values = append(values, noText, noObject, noTime)
			continue
		}
		g := s.groups.of(groupID{index, key})
		if !s.options.Captured {
			g.seen(e.Line, e.Timestamp)
		}
		out.groups[index] = g
		createdAt := noTime
		if !g.createdAt.IsZero() {
			createdAt = g.createdAt
		}
		values = append(values, key, g.json(), createdAt)
	}
	out.row = row{e.Line, rowKey(e.Record), values}
	return out
}

// rowKey is the key of an event's row.
func rowKey(r *record.Record) string {
	return r.UUID.String() + " " + strconv.FormatInt(r.Timestamp.UnixMicro(), 10) + " " + strconv.Quote(r.Event) + " " + r.DistinctID
}

// arrival is when an event arrived. An import's events arrived now at the latest, whatever the file says, because a deletion covers what arrived before it.
func (s *session) arrival(r *record.Record) time.Time {
	if r.Arrived.IsZero() || !s.options.Captured && r.Arrived.After(s.options.Now) {
		return s.options.Now
	}
	return r.Arrived
}

func flag(b bool) int8 {
	if b {
		return 1
	}
	return 0
}

// sorted gives rows that come from a map a stable order.
func sorted(rows []row) []row {
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.key, b.key) })
	return rows
}

// insert writes a block with a token made from its content, so that ClickHouse takes it only once even if the first attempt only seemed to fail. If ClickHouse
// refuses the block because of its data, each half is tried, until the bad rows stand alone.
func (s *session) insert(ctx context.Context, b block) error {
	for n := chunk(b.rows); n < len(b.rows); n = chunk(b.rows) {
		if err := s.insert(ctx, b.part(0, n)); err != nil {
			return err
		}
		b = b.part(n, len(b.rows))
	}
	if len(b.rows) == 0 {
		return nil
	}
	err := s.store.insert(ctx, b)
	var refused *clickhouse.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refused):
		return fmt.Errorf("writing %s: %w", b.table, err)
	case !refused.ByData():
		if refused.Kind == clickhouse.UserError { // its message may quote the data, and Caddy logs what its admin API answers
			return fmt.Errorf("writing %s: ClickHouse rejected the data: code %d, %s", b.table, refused.Code, refused.Name)
		}
		return fmt.Errorf("writing %s: %w", b.table, err)
	case len(b.rows) == 1:
		s.refuse(b.table, b.rows[0], refused)
		return nil
	}
	half := len(b.rows) / 2
	if err := s.insert(ctx, b.part(0, half)); err != nil {
		return err
	}
	return s.insert(ctx, b.part(half, len(b.rows)))
}

// part is some of the rows of a block.
func (b block) part(from, to int) block {
	b.rows = b.rows[from:to]
	return b
}

// refuse reports a row that ClickHouse refuses.
func (s *session) refuse(table string, r row, reason *clickhouse.Error) {
	err := fmt.Errorf("ClickHouse rejected the row's data (%s)", reason.Name)
	s.people.refused = s.people.refused || table == physical.Persons
	if table == physical.Events && (r.line == 0 || s.options.Captured) {
		s.refusals.add(r.key, err.Error())
	}
	if r.line == 0 { // of a batch that is completed: its events are still to come
		return
	}
	if !s.refused[r.line] {
		s.refused[r.line] = true
		s.bad(r.line, err)
	}
	if table == physical.Events {
		s.report.Events--
	}
}

// size is the number of bytes of text in a row.
func (r row) size() (size int) {
	for _, value := range r.values {
		if text, ok := value.(string); ok {
			size += len(text)
		}
	}
	return size
}

// size is the number of bytes of text in a block.
func (b block) size() (size int) {
	for _, r := range b.rows {
		size += r.size()
	}
	return size
}

// chunk is how many of the rows go into one block, so that its size is bounded even if each event repeats the properties of a large person.
func chunk(rows []row) int {
	size := 0
	for n, row := range rows {
		size += row.size()
		if size > maxBlock && n > 0 {
			return n
		}
	}
	return len(rows)
}

// maxBlock is how many bytes of text a block holds, unless a single row has more.
const maxBlock = 48 << 20

// insert writes a block, together with those of other projects if it is gathered.
func (s *store) insert(ctx context.Context, b block) error {
	if s.inserting != nil {
		if err := s.inserting(b); err != nil {
			return err
		}
	}
	if s.gathering != nil {
		if err := s.gathering.insert(ctx, s, b); !errors.Is(err, errAlone) {
			return err
		}
	}
	return insertBlocks(ctx, s.client, []*gathered{{block: b, store: s}})
}

// insertBlocks writes blocks of a table as one, with only the columns that the table has.
func insertBlocks(ctx context.Context, client *clickhouse.Client, blocks []*gathered) error {
	first := blocks[0]
	var columns []clickhouse.Column
	var places []int
	for n, name := range first.columns {
		if typ := first.store.layout[first.table][name]; typ != "" {
			columns = append(columns, clickhouse.Column{Name: name, Type: typ})
			places = append(places, n)
		}
	}
	projects := make([]int64, len(blocks))
	for n, b := range blocks {
		projects[n] = b.store.project
	}
	ends := make([]func(error), len(blocks))
	for n, b := range blocks {
		ends[n] = b.store.begin(&b.block)
	}
	values := make([]any, len(columns))
	err := client.Insert(ctx, clickhouse.Batch{
		Table: first.table, Columns: columns, Token: token(blocks), Projects: projects,
		Rows: func(yield func([]any) bool) {
			for _, b := range blocks {
				for _, row := range b.rows {
					for n, place := range places {
						values[n] = row.values[place]
					}
					if !yield(values) {
						return
					}
				}
			}
		},
	})
	for _, end := range ends {
		end(err)
	}
	return err
}

// token is the same for the same rows of the same projects, until something is deleted there.
func token(blocks []*gathered) string {
	sum := sha256.New()
	for _, b := range blocks {
		sum.Write(fmt.Appendf(nil, "%d %s\n", b.store.project, b.table))
		if b.store.epoch != 0 {
			sum.Write(fmt.Appendf(nil, "%d\n", b.store.epoch))
		}
		for _, row := range b.rows {
			sum.Write([]byte(row.key + "\n"))
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

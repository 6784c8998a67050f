package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// importTable is what an import has to know about a physical table: the types of the columns it may write.
type importTable map[string]string

// text is the expression that reads a JSON column as text.
func (t importTable) text(column string) string {
	if strings.HasPrefix(t[column], "JSON") {
		return "toJSONString(" + column + ")"
	}
	return column
}

// or is a column, or another expression where the table has no such column.
func (t importTable) or(column, other string) string {
	if t[column] == "" {
		return other
	}
	return column
}

type importLayout map[string]importTable

func newImportLayout(columns []physical.Column) (importLayout, error) {
	layout := importLayout{}
	for _, c := range columns {
		if layout[c.Table] == nil {
			layout[c.Table] = importTable{}
		}
		if c.DefaultKind != "MATERIALIZED" && c.DefaultKind != "ALIAS" {
			layout[c.Table][c.Name] = c.Type
		}
	}
	for _, t := range physical.Tables {
		if layout[t.Name] == nil && !t.Optional {
			return nil, fmt.Errorf("the table %s is missing", t.Name)
		}
	}
	return layout, nil
}

// importRow is a row for one table, by column.
type importRow struct {
	line   int
	key    string // what makes the row this row: the same key is the same content
	values map[string]any
}

// write applies the lines of a batch in their order. Persons and groups are written before the events, because
// an import that broke off passes over the events that are there, and over what they say, when it is run again.
// Overrides come first of all: they are found out by comparing with what the other tables hold.
func (i *importer) write(ctx context.Context, lines []importLine) error {
	if err := i.load(ctx, lines); err != nil {
		return err
	}
	known, err := i.knownEvents(ctx, lines)
	if err != nil {
		return err
	}
	events := make([]importRow, 0, len(lines))
	for n := range lines {
		line := &lines[n]
		switch line.kind {
		case personLine:
			if err := i.person(ctx, *line); err != nil {
				return err
			}
		case groupLine:
			i.group(*line)
		case cohortLine:
			i.cohort(*line)
		case eventLine:
			i.report.Events++
			if known[line.uuid] {
				i.report.Duplicates++
				i.learn(line)
				continue
			}
			known[line.uuid] = true
			row, err := i.event(ctx, line)
			if err != nil {
				return err
			}
			events = append(events, row)
		}
	}
	if err := i.dateGroups(ctx); err != nil {
		return err
	}
	members, err := i.memberRows(ctx)
	if err != nil {
		return err
	}
	moved, ids := i.idRows()
	for _, t := range []struct {
		name string
		rows []importRow
	}{
		{"person_distinct_id_overrides", moved},
		{"person", i.personRows()},
		{"person_distinct_id2", ids},
		{"groups", i.groupRows()},
		{membersTable, members},
		{"events", events},
	} {
		if err := i.insert(ctx, t.name, t.rows); err != nil {
			return err
		}
	}
	i.written()
	return nil
}

// event makes the row of an event, after applying what it says about its person and groups.
func (i *importer) event(ctx context.Context, line *importLine) (importRow, error) {
	keys := i.eventGroups(line)
	id, p, err := i.profile(ctx, *line)
	if err != nil {
		return importRow{}, err
	}
	i.learn(line)
	if name, key, set := groupIdentify(*line); key != "" {
		if index, ok := i.groupIndex(name); ok {
			i.describe(line.number, groupID{index, key}, set).seen(line.number, line.timestamp)
		}
	}
	session, _ := nameOf(line.properties.get("$session_id"))
	window, _ := nameOf(line.properties.get("$window_id"))
	values := map[string]any{
		"uuid": line.uuid, "event": line.event, "properties": line.properties.json(), "timestamp": line.timestamp,
		"team_id": i.options.Project, "distinct_id": line.distinctID, "elements_chain": line.elements,
		"created_at": i.options.Now, "person_id": id, "person_created_at": time.Unix(0, 0).UTC(), "person_properties": "{}",
		"person_mode": "propertyless", "$session_id": session, "$window_id": window, "_timestamp": i.options.Now, "_offset": uint64(0),
	}
	if p != nil {
		values["person_mode"] = "full"
		values["person_properties"] = p.json()
		values["person_created_at"] = p.createdAt
	}
	for index, key := range keys {
		n := strconv.Itoa(index)
		values["$group_"+n] = key
		values["group"+n+"_properties"] = "{}"
		values["group"+n+"_created_at"] = time.Unix(0, 0).UTC()
		if key == "" {
			continue
		}
		id := groupID{index, key}
		g := i.state.groups[id]
		if g == nil {
			g = &group{}
			i.state.groups[id] = g
		}
		g.seen(line.number, line.timestamp)
		values["group"+n+"_properties"] = g.json()
		values["group"+n+"_created_at"] = g.createdAt
	}
	return importRow{line: line.number, key: line.uuid.String(), values: values}, nil
}

// learn takes the types and names that an event shows. Events that are there already are asked again: the import
// that wrote them may have broken off before anyone kept what it had learned.
func (i *importer) learn(line *importLine) {
	i.eventGroups(line)
	i.types.observe(eventScope, 0, line.properties)
	i.types.observe(personScope, 0, objectOf(line.properties.get("$set_once")))
	i.types.observe(personScope, 0, objectOf(line.properties.get("$set")))
}

// dateGroups finds the time of creation of groups that are described after their events.
func (i *importer) dateGroups(ctx context.Context) error {
	undated := map[int][]string{}
	for id, g := range i.state.groups {
		if g.changed && !g.stored && !g.given {
			undated[id.index] = append(undated[id.index], id.key)
		}
	}
	for _, index := range slices.Sorted(maps.Keys(undated)) {
		keys := undated[index]
		slices.Sort(keys)
		err := i.firstEvents(ctx, index, keys, func(key string, at time.Time) {
			g := i.state.groups[groupID{index, key}]
			g.seen(g.line, at)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (i *importer) personRows() []importRow {
	var rows []importRow
	for _, p := range i.state.persons {
		if !p.changed {
			continue
		}
		if p.stored {
			p.version++
		}
		if p.createdAt.IsZero() {
			p.createdAt = i.options.Now
		}
		rows = append(rows, importRow{
			line: p.line,
			key:  fmt.Sprintf("%s %d %t %t %s %s", p.id, p.version, p.deleted, p.identified, p.createdAt, p.json()),
			values: map[string]any{
				"id": p.id, "created_at": p.createdAt, "team_id": i.options.Project, "properties": p.json(), "is_identified": flag(p.identified),
				"is_deleted": flag(p.deleted), "version": p.version, "created_at_given": uint8(flag(p.given)), //nolint:gosec // 0 or 1
				"_timestamp": i.options.Now, "_offset": uint64(0),
			},
		})
	}
	return sorted(rows)
}

// idRows gives the rows of distinct ids that changed hands after events had been written with their old person,
// and those of all that changed.
func (i *importer) idRows() (moved, all []importRow) {
	for name, entry := range i.state.ids {
		if !entry.changed {
			continue
		}
		row := importRow{
			line: entry.line,
			key:  fmt.Sprintf("%q %s %d", name, entry.person.id, entry.version),
			values: map[string]any{
				"team_id": i.options.Project, "distinct_id": name, "person_id": entry.person.id, "is_deleted": int8(0),
				"version": entry.version, "_timestamp": i.options.Now, "_offset": uint64(0), "_partition": uint64(0),
			},
		}
		if entry.moved {
			moved = append(moved, row)
		}
		all = append(all, row)
	}
	return sorted(moved), sorted(all)
}

// groupRows gives the rows of the groups that changed. The newest row of a group is the one with the latest
// _timestamp, so that each gets a later one than the last.
func (i *importer) groupRows() []importRow {
	var rows []importRow
	for id, g := range i.state.groups {
		if !g.changed {
			continue
		}
		stamp := i.options.Now.Truncate(time.Microsecond)
		if !stamp.After(g.stamp) {
			stamp = g.stamp.Add(tick(i.layout["groups"]["_timestamp"]))
		}
		g.stamp = stamp
		if g.createdAt.IsZero() {
			g.createdAt = i.options.Now
		}
		rows = append(rows, importRow{
			line: g.line,
			key:  fmt.Sprintf("%d %q %s %s", id.index, id.key, g.createdAt, g.json()),
			values: map[string]any{
				"group_type_index": uint8(id.index), "group_key": id.key, "created_at": g.createdAt, "team_id": i.options.Project, //nolint:gosec // 0 to 4
				"group_properties": g.json(), "created_at_given": uint8(flag(g.given)), "_timestamp": stamp, "_offset": uint64(0), //nolint:gosec // 0 or 1
			},
		})
	}
	return sorted(rows)
}

// tick is the smallest step of a time column.
func tick(typ string) time.Duration {
	if strings.HasPrefix(typ, "DateTime64(6") {
		return time.Microsecond
	}
	return time.Second
}

func flag(b bool) int8 {
	if b {
		return 1
	}
	return 0
}

// sorted puts rows that come from a map into an order of their own.
func sorted(rows []importRow) []importRow {
	slices.SortFunc(rows, func(a, b importRow) int { return strings.Compare(a.key, b.key) })
	return rows
}

// written marks the state as stored.
func (i *importer) written() {
	for id, p := range i.state.persons {
		if p.deleted {
			delete(i.state.persons, id)
		}
		p.stored, p.changed = true, false
	}
	for _, entry := range i.state.ids {
		if entry.changed {
			entry.stored, entry.changed, entry.moved = true, false, false
		}
	}
	for _, g := range i.state.groups {
		if g.described {
			g.stored, g.changed = true, false
		}
	}
}

// insertSettings make an insert synchronous, whole, and true to the text of JSON values: no date or number is
// guessed from a string, no boolean becomes a number.
var insertSettings = []setting{
	{"async_insert", 0},
	{"insert_deduplicate", 1},
	{"insert_distributed_sync", 1},
	{"max_partitions_per_insert_block", 0},
	{"date_time_input_format", "basic"},
	{"json_type_escape_dots_in_keys", 1},
	{"type_json_skip_duplicated_paths", 1},
	{"input_format_try_infer_dates", 0},
	{"input_format_try_infer_datetimes", 0},
	{"input_format_json_try_infer_numbers_from_strings", 0},
	{"input_format_json_read_bools_as_numbers", 0},
	{"input_format_json_read_bools_as_strings", 0},
	{"input_format_json_read_numbers_as_strings", 0},
	{"input_format_json_infer_incomplete_types_as_strings", 1},
	{"session_timezone", "UTC"},
}

// insert writes rows as one block with a token made from their content, so that the server takes it once even
// when the first try only seemed to fail. If the server refuses the block for its data, the halves are tried,
// until the bad lines stand alone.
func (i *importer) insert(ctx context.Context, name string, rows []importRow) error {
	for n := chunk(rows); n < len(rows); n = chunk(rows) {
		if err := i.insert(ctx, name, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	if len(rows) == 0 {
		return nil
	}
	err := i.send(ctx, name, rows)
	var refused *Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refused):
		return fmt.Errorf("writing %s: %w", name, err)
	case !badData[refused.Code]:
		if refused.Kind == UserError { // its message may quote the data, and Caddy logs what its admin API answers
			return fmt.Errorf("writing %s: ClickHouse refuses the data: code %d, %s", name, refused.Code, refused.Name)
		}
		return fmt.Errorf("writing %s: %w", name, err)
	case len(rows) == 1:
		if line := rows[0].line; !i.refused[line] {
			i.refused[line] = true
			i.bad(line, fmt.Errorf("ClickHouse refuses its data (%s)", refused.Name))
		}
		if name == "events" {
			i.report.Events--
		}
		return nil
	}
	half := len(rows) / 2
	if err := i.insert(ctx, name, rows[:half]); err != nil {
		return err
	}
	return i.insert(ctx, name, rows[half:])
}

// chunk is how many of the rows go into one block, so that its size is bounded also when each event repeats the
// properties of a large person.
func chunk(rows []importRow) int {
	size := 0
	for n, row := range rows {
		for _, value := range row.values {
			if text, ok := value.(string); ok {
				size += len(text)
			}
		}
		if size > maxBlock && n > 0 {
			return n
		}
	}
	return len(rows)
}

// maxBlock is how many bytes of text a block holds, unless a single row has more.
const maxBlock = 32 << 20

// badData are the errors that one row can cause for a whole block.
var badData = map[int]bool{
	6: true, 26: true, 27: true, 32: true, 33: true, 36: true, 41: true, 53: true, 72: true, 117: true, 130: true, 131: true, 321: true, 469: true,
}

func (i *importer) send(ctx context.Context, name string, rows []importRow) error {
	server, err := i.client.server(ctx)
	if err != nil {
		return err
	}
	table := i.layout[name]
	var columns, quoted []string
	var types []driver.ColumnNameAndType
	for _, column := range slices.Sorted(maps.Keys(rows[0].values)) {
		if typ := table[column]; typ != "" {
			columns = append(columns, column)
			quoted = append(quoted, identifier(column))
			types = append(types, driver.ColumnNameAndType{Name: column, Type: typ})
		}
	}
	settings := driver.Settings{"insert_deduplication_token": token(i.options.Project, name, rows)}
	for _, s := range insertSettings {
		if server.settings[s.name] {
			settings[s.name] = s.value
		}
	}
	err = i.client.with(ctx, func(ctx context.Context, conn driver.Conn) (err error) {
		batch, err := conn.PrepareBatch(
			driver.Context(ctx, driver.WithSettings(settings), driver.WithColumnNamesAndTypes(types)),
			"INSERT INTO "+name+" ("+strings.Join(quoted, ", ")+")")
		if err != nil {
			return err
		}
		defer func() {
			if !batch.IsSent() {
				err = errors.Join(err, batch.Abort())
			}
		}()
		values := make([]any, len(columns))
		for _, row := range rows {
			for n, column := range columns {
				values[n] = row.values[column]
			}
			if err := batch.Append(values...); err != nil {
				return err
			}
		}
		return batch.Send()
	})
	if err != nil {
		return i.client.failure(ctx, "inserting", err)
	}
	return nil
}

// token is the same for the same rows of the same project.
func token(project int64, table string, rows []importRow) string {
	sum := sha256.New()
	sum.Write(fmt.Appendf(nil, "%d %s\n", project, table))
	for _, row := range rows {
		sum.Write([]byte(row.key + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

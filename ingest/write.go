package ingest

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

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// row is a row for one table, by column.
type row struct {
	line   int
	key    string // what makes the row this row: the same key is the same content
	values map[string]any
}

// row makes a row, with the columns that all tables have.
func (s *store) row(line int, key string, values map[string]any) row {
	values[physical.Project], values["_timestamp"], values["_offset"] = s.project, s.now, uint64(0)
	return row{line, key, values}
}

// eventRow makes the row of an event of a person, who is nil for an event without profile, and of groups by their index.
func (s *session) eventRow(r *record.Record, id uuid.UUID, p *person, groups [physical.GroupTypes]string) row {
	session, _ := r.Properties.Get("$session_id").Text()
	window, _ := r.Properties.Get("$window_id").Text()
	values := map[string]any{
		"uuid": r.UUID, "event": r.Event, "properties": r.Properties.JSON(), "timestamp": r.Timestamp,
		"distinct_id": r.DistinctID, "elements_chain": r.Elements,
		"created_at": s.options.Now, "person_id": id, "person_created_at": time.Unix(0, 0).UTC(), "person_properties": "{}",
		"person_mode": "propertyless", "$session_id": session, "$window_id": window,
	}
	if p != nil {
		values["person_mode"] = "full"
		values["person_properties"] = p.json()
		values["person_created_at"] = p.createdAt
	}
	for index, key := range groups {
		n := strconv.Itoa(index)
		values["$group_"+n] = key
		values["group"+n+"_properties"] = "{}"
		values["group"+n+"_created_at"] = time.Unix(0, 0).UTC()
		if key == "" {
			continue
		}
		g := s.groups.of(groupID{index, key})
		g.seen(r.Line, r.Timestamp)
		values["group"+n+"_properties"] = g.json()
		values["group"+n+"_created_at"] = g.createdAt
	}
	return s.store.row(r.Line, r.UUID.String(), values)
}

func flag(b bool) int8 {
	if b {
		return 1
	}
	return 0
}

// sorted puts rows that come from a map into an order of their own.
func sorted(rows []row) []row {
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.key, b.key) })
	return rows
}

// insert writes rows as one block with a token made from their content, so that the server takes it once even
// when the first try only seemed to fail. If the server refuses the block for its data, the halves are tried,
// until the bad rows stand alone.
func (s *session) insert(ctx context.Context, table string, rows []row) error {
	for n := chunk(rows); n < len(rows); n = chunk(rows) {
		if err := s.insert(ctx, table, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	if len(rows) == 0 {
		return nil
	}
	err := s.store.insert(ctx, table, rows)
	var refused *clickhouse.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refused):
		return fmt.Errorf("writing %s: %w", table, err)
	case !refused.ByData():
		if refused.Kind == clickhouse.UserError { // its message may quote the data, and Caddy logs what its admin API answers
			return fmt.Errorf("writing %s: ClickHouse refuses the data: code %d, %s", table, refused.Code, refused.Name)
		}
		return fmt.Errorf("writing %s: %w", table, err)
	case len(rows) == 1:
		s.refuse(table, rows[0].line, refused)
		return nil
	}
	half := len(rows) / 2
	if err := s.insert(ctx, table, rows[:half]); err != nil {
		return err
	}
	return s.insert(ctx, table, rows[half:])
}

// refuse reports a row that the server does not take.
func (s *session) refuse(table string, line int, reason *clickhouse.Error) {
	if !s.refused[line] {
		s.refused[line] = true
		s.bad(line, fmt.Errorf("ClickHouse refuses its data (%s)", reason.Name))
	}
	if table == physical.Events {
		s.report.Events--
	}
}

// chunk is how many of the rows go into one block, so that its size is bounded also when each event repeats the
// properties of a large person.
func chunk(rows []row) int {
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

// insert writes rows in the columns that the table has.
func (s *store) insert(ctx context.Context, table string, rows []row) error {
	var columns []clickhouse.Column
	for _, name := range slices.Sorted(maps.Keys(rows[0].values)) {
		if typ := s.layout[table][name]; typ != "" {
			columns = append(columns, clickhouse.Column{Name: name, Type: typ})
		}
	}
	values := make([]any, len(columns))
	return s.client.Insert(ctx, clickhouse.Batch{
		Table: table, Columns: columns, Token: token(s.project, table, rows),
		Rows: func(yield func([]any) bool) {
			for _, row := range rows {
				for n, column := range columns {
					values[n] = row.values[column.Name]
				}
				if !yield(values) {
					return
				}
			}
		},
	})
}

// token is the same for the same rows of the same project.
func token(project int64, table string, rows []row) string {
	sum := sha256.New()
	sum.Write(fmt.Appendf(nil, "%d %s\n", project, table))
	for _, row := range rows {
		sum.Write([]byte(row.key + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

package execution_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func (s *server) caller() *execution.Caller {
	return &execution.Caller{Project: s.project, Snapshot: s.registry.Snapshot(), Start: time.Now()}
}

// export begins to export a query, which holds its place on ClickHouse.
func (s *server) export(t *testing.T, q *execution.Query) *execution.Stream {
	t.Helper()
	stream, err := s.Stream(t.Context(), s.caller(), q, -1, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.open(t, stream)
	return stream
}

func (s *server) open(t *testing.T, stream *execution.Stream) {
	t.Helper()
	if _, err := stream.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.Close)
}

// TestStreamWithoutTable: if an export's table takes too long, its query runs instead, under another id and with the full time limit of a query.
func TestStreamWithoutTable(t *testing.T) {
	s := startWith(t, clickhouse.Config{MaxExecutionTime: 2 * time.Second})
	s.load(t, event("a", "ann", "2026-03-01T12:00:00Z"), event("b", "ann", "2026-03-01T12:00:00Z"))
	q := s.query(t, `{"kind":"HogQLQuery","query":"select event from events order by event"}`)
	q.Endpoint, q.Version = &registry.Endpoint{Project: s.project.ID, Name: "e"}, &registry.Version{Number: 1}
	caller := s.caller()
	plan, err := s.PlanTable(t.Context(), caller.Snapshot, execution.Uncounted(s.project.ID), execution.Subject{Project: s.project.ID, Endpoint: "e", Version: 1, Node: q.Node}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	q.Stored = &execution.Stored{Plan: plan, Table: clickhouse.MaterializedTable{Project: s.project.ID, Endpoint: uuid.New(), Version: 1, Fill: 1}, AsOf: time.Now()}
	clickhousetest.Execute(t, engine, fmt.Sprintf("CREATE VIEW `%s` AS SELECT toString(sleepEachRow(3)) AS c0, toInt64(%d) AS team_id FROM numbers(1)", q.Stored.Table.Name(), s.project.ID))
	var passedOver error
	s.Reports.Table = func(_ *execution.Query, err error) { passedOver = err }

	stream := s.export(t, q)
	id, until := stream.ID, stream.Until()
	var rows clickhousetest.Rows
	if err := stream.Send(t.Context(), &rows); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`["a"]`, `["b"]`}, rows.Texts); diff != "" {
		t.Errorf("the rows are (-want +got):\n%s", diff)
	}
	if stream.ID == id {
		t.Error("both queries have the same id")
	}
	if !stream.Until().After(until) {
		t.Error("both queries have the same deadline")
	}
	if of, ok := errors.AsType[*clickhouse.Error](passedOver); !ok || of.Kind != clickhouse.Timeout {
		t.Errorf("the table was passed over because of %v", passedOver)
	}
}

// TestStreamOtherValues: an event with another kind of value, which comes in after an export was compiled, is in its file like any other, whether
// ClickHouse writes the file or its rows are read, and whether there was anything to send before.
func TestStreamOtherValues(t *testing.T) {
	for _, tt := range []struct {
		name, query string
		send        func(*testing.T, *execution.Stream) string
		want        string
	}{
		{"rows", "select properties.x as x from events order by toString(x)", sendRows, `["5"] ["text"]`},
		{"no rows before", "select properties.x as x from events where x = '5'", sendRows, `["5"]`},
		{"a file", "select properties.x as x from events order by toString(x)", sendFile, "5 text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t)
			s.Registry = s.registry
			if err := s.registry.KnowValues(t.Context(), s.project.ID); err != nil {
				t.Fatal(err)
			}
			s.loadValue(t, `"text"`, physical.Texts)
			stream := s.export(t, s.query(t, fmt.Sprintf(`{"kind":"HogQLQuery","query":%q}`, tt.query)))
			s.loadValue(t, "5", physical.Wholes)
			if got := tt.send(t, stream); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// loadValue imports an event with a value of the property x. The kind is recorded before, as by an import.
func (s *server) loadValue(t *testing.T, value string, kind physical.Kinds) {
	t.Helper()
	err := s.registry.Widen(t.Context(), s.project.ID, []registry.PropertyValues{{
		PropertyDefinition: registry.PropertyDefinition{Scope: registry.EventProperty, Name: "x", Type: registry.PropertyString}, Kinds: kind,
	}}, false)
	if err != nil {
		t.Fatal(err)
	}
	s.load(t, fmt.Sprintf(`{"event":"e","distinct_id":"ann","timestamp":"2026-03-01T12:00:00Z","properties":{"x":%s}}`, value))
}

func sendRows(t *testing.T, stream *execution.Stream) string {
	t.Helper()
	var rows clickhousetest.Rows
	if err := stream.Send(t.Context(), &rows); err != nil {
		t.Fatal(err)
	}
	return strings.Join(rows.Texts, " ")
}

// sendFile returns the first column of a file.
func sendFile(t *testing.T, stream *execution.Stream) string {
	t.Helper()
	var written bytes.Buffer
	if err := stream.SendFile(t.Context(), clickhouse.Parquet, &written); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(written.Bytes()), int64(written.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		read := make([]parquet.Row, group.NumRows())
		if _, err := rows.ReadRows(read); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		for _, row := range read {
			texts = append(texts, row[0].String())
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
	return strings.Join(texts, " ")
}

// TestStreamLogged: the log has each export that ran on ClickHouse, even if it failed or was cut off, with what was sent.
func TestStreamLogged(t *testing.T) {
	s := start(t)
	gone := errors.New("the reader is gone")
	numbers := "select number as n from numbers(3)"
	for _, tt := range []struct {
		name, query string
		send        func(context.Context, *execution.Stream) error
		fails       bool
		want        logged
	}{
		{"rows", numbers, func(ctx context.Context, of *execution.Stream) error { return of.Send(ctx, new(clickhousetest.Rows)) }, false, logged{3, 9, "QueryFinish", ""}},
		{"no rows", "select event from events", func(ctx context.Context, of *execution.Stream) error { return of.Send(ctx, new(clickhousetest.Rows)) }, false, logged{0, 0, "QueryFinish", ""}},
		{"a file", numbers, func(ctx context.Context, of *execution.Stream) error {
			return of.SendFile(ctx, clickhouse.Arrow, io.Discard)
		}, false, logged{0, -1, "QueryFinish", ""}},
		{"a failure", "select intDiv(1, number) as n from numbers(3)", func(ctx context.Context, of *execution.Stream) error {
			return of.Send(ctx, new(clickhousetest.Rows))
		}, true, logged{0, 0, "ExceptionWhileProcessing", "ILLEGAL_DIVISION"}},
		{"a reader who is gone", numbers, func(ctx context.Context, of *execution.Stream) error {
			return of.Send(ctx, &shortSink{left: 1, err: gone})
		}, true, logged{1, 3, "ExceptionWhileProcessing", ""}},
		{"a request that ends", "select number as n from numbers(100000000)", func(ctx context.Context, of *execution.Stream) error {
			ctx, cancel := context.WithCancelCause(ctx)
			return of.Send(ctx, &shortSink{left: 1, stop: func() { cancel(gone) }})
		}, true, logged{-1, -1, "ExceptionWhileProcessing", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := s.queries()
			q := s.query(t, fmt.Sprintf(`{"kind":"HogQLQuery","query":%q}`, tt.query))
			q.Rows = compiler.Whole
			stream := s.export(t, q)
			if err := tt.send(t.Context(), stream); (err != nil) != tt.fails {
				t.Fatal(err)
			}
			rows := s.Runs.Queries.Rows(s.project.ID, time.Now())
			if len(rows) != before+1 {
				t.Fatalf("%d rows more", len(rows)-before)
			}
			last := rows[before]
			got := logged{last[13], last[14], last[16], last[18]}
			for n, want := range tt.want {
				if want == -1 {
					if count, _ := got[n].(int64); count <= 0 {
						t.Errorf("value %d is %v", n, got[n])
					}
					got[n] = -1
				}
			}
			if got, want := fmt.Sprint(got), fmt.Sprint(tt.want); got != want || last[2] != stream.ID || last[5] != tt.query {
				t.Errorf("the row is %v, want %s", last, want)
			}
		})
	}
}

// logged returns the rows, bytes, status and exception of a query in the log; -1 stands for any number but 0.
type logged [4]any

// shortSink takes some rows, and then stops or fails.
type shortSink struct {
	clickhousetest.Rows

	left int
	stop func()
	err  error
}

// Row takes a row if any are left.
func (s *shortSink) Row(row []byte) error {
	if s.left--; s.left >= 0 {
		return s.Rows.Row(row)
	}
	if s.stop != nil {
		s.stop()
	}
	return s.err
}

package clickhouse_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

const arrowEnd = "\xff\xff\xff\xff\x00\x00\x00\x00"

// TestExport writes files from results with many blocks, and with none.
func TestExport(t *testing.T) {
	c := client(t)
	for _, tt := range []struct {
		format clickhouse.FileFormat
		begin  string
		end    string
	}{{clickhouse.Parquet, "PAR1", "PAR1"}, {clickhouse.Arrow, "\xff\xff\xff\xff", arrowEnd}} {
		for _, rows := range []string{"0", "1", "300000"} {
			var file bytes.Buffer
			_, err := c.Export(t.Context(), clickhouse.Query{
				SQL: "SELECT number AS n, {text:String} AS t FROM numbers(" + rows + ")", Project: project(),
				Params: []clickhouse.Param{{Name: "text", Type: "String", Value: "a\tb"}},
			}, tt.format, &file)
			if err != nil {
				t.Fatalf("%s of %s rows: %v", tt.format, rows, err)
			}
			if got := file.String(); !strings.HasPrefix(got, tt.begin) || strings.Count(got, tt.end) < 1 || !strings.HasSuffix(got, tt.end) {
				t.Errorf("%s of %s rows: %d bytes, %.40q … %.40q", tt.format, rows, len(got), got, got[max(0, len(got)-40):])
			}
		}
	}
}

// TestPage returns a page of a result, after the query's own LIMIT.
func TestPage(t *testing.T) {
	c := client(t)
	for _, tt := range []struct {
		sql           string
		limit, offset int
		want          []string
	}{
		{"SELECT number FROM numbers(100) ORDER BY number", 2, 5, []string{"[5]", "[6]"}},
		{"SELECT number FROM numbers(100) ORDER BY number LIMIT 3 OFFSET 10", 5, 1, []string{"[11]", "[12]"}},
		{"SELECT number FROM numbers(100) ORDER BY number LIMIT 3 OFFSET 10", 5, 3, nil},
		{"SELECT n FROM (SELECT number AS n FROM numbers(100) ORDER BY n DESC LIMIT 4) ORDER BY n", 2, 0, []string{"[96]", "[97]"}},
		{"SELECT count() FROM (SELECT number FROM numbers(100) LIMIT 50)", 10, 0, []string{"[50]"}},
		{"SELECT number FROM numbers(4) ORDER BY number DESC LIMIT 1 BY number", 2, 1, []string{"[2]", "[1]"}},
	} {
		var out rows
		if _, err := c.Query(t.Context(), clickhouse.Query{SQL: tt.sql, Project: project(), Limit: tt.limit, Offset: tt.offset}, &out); err != nil {
			t.Fatalf("%s: %v", tt.sql, err)
		}
		if diff := cmp.Diff(tt.want, out.Texts); diff != "" {
			t.Errorf("%d rows at offset %d of %s (-want +got):\n%s", tt.limit, tt.offset, tt.sql, diff)
		}
	}
}

// TestUnbounded passes on a result that is larger than the limit.
func TestUnbounded(t *testing.T) {
	c := openWith(t, clickhouse.Config{DSN: engine.DSN(), MaxResultRows: 10})
	q := clickhouse.Query{SQL: "SELECT number FROM numbers(100000)", Project: project()}
	var failure *clickhouse.Error
	if _, err := c.Query(t.Context(), q, new(rows)); !errors.As(err, &failure) || failure.Kind != clickhouse.TooLarge {
		t.Errorf("bounded: %v", err)
	}
	q.Unbounded = true
	var out rows
	if _, err := c.Query(t.Context(), q, &out); err != nil || len(out.Texts) != 100_000 {
		t.Errorf("unbounded: %d rows, %v", len(out.Texts), err)
	}
	q.SQL = "SELECT max(blockSize()) FROM numbers(100000)"
	if _, err := c.Query(t.Context(), q, &out); err != nil || out.Texts[len(out.Texts)-1] != "[4096]" {
		t.Errorf("rows per block: %v, %v", out.Texts[len(out.Texts)-1], err)
	}
}

// TestExportBroken serves files that break off. None may count as complete, and no message of the server may get
// into a file.
func TestExportBroken(t *testing.T) {
	const tag = "abcdefghijklmnop"
	exception := "\r\n__exception__\r\n" + tag + "\r\nCode: 153. DB::Exception: Division by zero. (ILLEGAL_DIVISION)\n63 " + tag + "\r\n__exception__\r\n"
	division := &clickhouse.Error{Kind: clickhouse.UserError, Code: 153, Name: "illegal_division", Message: "Division by zero."}
	gone := &clickhouse.Error{Kind: clickhouse.Unavailable, Message: "ClickHouse cannot be reached"}
	long := strings.Repeat("row ", 100_000)
	tests := []struct {
		name   string
		format clickhouse.FileFormat
		parts  []string
		abort  bool
		want   *clickhouse.Error
	}{
		{"whole", clickhouse.Parquet, []string{"PAR1", long, "PA", "R1"}, false, nil},
		{"whole, of Arrow", clickhouse.Arrow, []string{long, arrowEnd[:3], arrowEnd[3:]}, false, nil},
		{"cut silently", clickhouse.Parquet, []string{"PAR1", long}, false, gone},
		{"cut, of Arrow", clickhouse.Arrow, []string{long, arrowEnd[:7]}, false, gone},
		{"an exception behind the end", clickhouse.Parquet, []string{"PAR1", long, "PAR1", exception}, false, division},
		{"an exception among the rows", clickhouse.Arrow, []string{long, exception}, true, division},
		{"nothing", clickhouse.Arrow, nil, false, gone},
		{"a broken connection", clickhouse.Parquet, []string{"PAR1", long, "PAR1"}, true, gone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := fake(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-ClickHouse-Exception-Tag", tag)
				for _, part := range tt.parts {
					send(w, []byte(part))
					w.(http.Flusher).Flush()
				}
				if tt.abort {
					panic(http.ErrAbortHandler)
				}
			})
			var file bytes.Buffer
			_, err := c.Export(t.Context(), clickhouse.Query{SQL: "SELECT 1", Project: 1}, tt.format, &file)
			var got *clickhouse.Error
			errors.As(err, &got)
			if diff := cmp.Diff(tt.want, got, ignoreCause); diff != "" || (err == nil) != (tt.want == nil) {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if strings.Contains(file.String(), "DB::Exception") {
				t.Error("the file contains the server's message")
			}
		})
	}
}

// full is a full disk, or a client that reads no more.
type full struct{ err error }

func (w full) Write([]byte) (int, error) { return 0, w.err }

// TestExportStops stops an export from the caller's side.
func TestExportStops(t *testing.T) {
	c := client(t)
	q := clickhouse.Query{SQL: "SELECT number FROM numbers(100000000)", Project: project(), Unbounded: true}
	if _, err := c.Export(t.Context(), q, clickhouse.Arrow, full{io.ErrShortWrite}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a writer that fails: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	left := errors.New("the caller left")
	_, err := c.Export(ctx, q, clickhouse.Arrow, writerFunc(func(p []byte) (int, error) {
		cancel(left)
		return len(p), nil
	}))
	if !errors.Is(err, left) {
		t.Errorf("a caller that leaves: %v", err)
	}
	if got := ask(t, c, project(), "SELECT 1"); !slices.Equal(got, []string{"[1]"}) {
		t.Errorf("afterwards: %v", got)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestExportNative checks that the native protocol cannot export files.
func TestExportNative(t *testing.T) {
	c := openWith(t, clickhouse.Config{DSN: "clickhouse://default@127.0.0.1:1"})
	_, err := c.Export(t.Context(), clickhouse.Query{SQL: "SELECT 1", Project: 1}, clickhouse.Parquet, io.Discard)
	if !errors.Is(err, clickhouse.ErrNoFiles) {
		t.Errorf("Export: %v", err)
	}
}

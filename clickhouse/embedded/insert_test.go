//go:build linux || darwin

package embedded_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

const inserted = `CREATE TABLE inserted (n UInt64, s LowCardinality(String), t DateTime64(6, 'UTC'), p JSON, a Array(Nullable(Int32)))
	ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 1000`

func TestInsertBatch(t *testing.T) {
	for name, compression := range map[string]*clickhouse.Compression{
		"plain": nil,
		"lz4":   {Method: clickhouse.CompressionLZ4},
		"zstd":  {Method: clickhouse.CompressionZSTD},
		"gzip":  {Method: clickhouse.CompressionGZIP, Level: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, engine(t), func(o *clickhouse.Options) { o.Compression = compression })
			execute(t, c, "DROP TABLE IF EXISTS inserted", inserted)
			ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"output_format_native_write_json_as_string": 1}))
			batch, err := c.PrepareBatch(ctx, "INSERT INTO inserted")
			if err != nil {
				t.Fatal(err)
			}
			when := time.Date(2024, 1, 2, 3, 4, 5, 678000, time.UTC)
			one := int32(1)
			for i := range 100_000 {
				if err := batch.Append(uint64(i), "x'\\", when, fmt.Sprintf(`{"k": %d, "s": "é\n"}`, i), []*int32{&one, nil}); err != nil {
					t.Fatal(err)
				}
			}
			if err := batch.Send(); err != nil {
				t.Fatal(err)
			}
			got := value[string](t, c, t.Context(),
				"SELECT toString((count(), sum(n), any(s), any(t), sum(p.k::UInt64), any(p.s), any(a))) FROM inserted")
			row := value[string](t, c, ctx, "SELECT p FROM inserted ORDER BY n DESC LIMIT 1")
			if want := `{"k":99999,"s":"é\n"}`; row != want {
				t.Errorf("a JSON column reads as %s, want %s", row, want)
			}
			if want := `(100000,4999950000,'x\'\\','2024-01-02 03:04:05.000678',4999950000,'é\n',[1,NULL])`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestFilesReadBack writes files with many row groups and batches, and reads them back.
func TestFilesReadBack(t *testing.T) {
	c := connect(t, engine(t))
	const (
		source = "SELECT number AS n, toString(number % 1000) || repeat('x', number % 50) AS s, toDateTime64('2024-01-02', 6, 'UTC') + number AS t, " +
			"[toNullable(number::Int32), NULL] AS a, number % 7 = 0 ? NULL : number / 3 AS f FROM numbers(300000)"
		digest = "SELECT toString((count(), sum(sipHash64(n, s, t, a, ifNull(f, -1))))) FROM "
	)
	want := value[string](t, c, t.Context(), digest+"("+source+")")
	for _, format := range []string{"Parquet", "ArrowStream"} {
		t.Run(format, func(t *testing.T) {
			execute(t, c, "DROP TABLE IF EXISTS readback",
				"CREATE TABLE readback (n UInt64, s String, t DateTime64(6, 'UTC'), a Array(Nullable(Int32)), f Nullable(Float64)) ENGINE = Memory")
			file, err := c.QueryFormat(t.Context(), format, source)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			if err := c.InsertFormat(t.Context(), format, "INSERT INTO readback", file); err != nil {
				t.Fatal(err)
			}
			if got := value[string](t, c, t.Context(), digest+"readback"); got != want {
				t.Errorf("read back: %s, want %s", got, want)
			}
		})
	}
}

func TestInsertFormat(t *testing.T) {
	c := connect(t, engine(t))
	execute(t, c, "DROP TABLE IF EXISTS inserted", inserted)
	lines := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, `{"n": %d, "s": "FORMAT x; --", "t": "2024-01-02 03:04:05", "p": {"k": {"d": %d}}, "a": [1, null]}`+"\n", i, i)
		}
		return b.String()
	}
	insert := func(token, data string) error {
		ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"insert_deduplication_token": token}))
		return c.InsertFormat(ctx, "JSONEachRow", "INSERT INTO inserted (n, s, t, p, a)", strings.NewReader(data))
	}
	count := func() uint64 { return value[uint64](t, c, t.Context(), "SELECT count() FROM inserted") }
	for _, tt := range []struct {
		name, token, data string
		want              uint64
	}{
		{"new", "one", lines(0, 1000), 1000},
		{"the same again", "one", lines(0, 1000), 1000},
		{"the same token with other rows", "one", lines(1000, 2000), 1000},
		{"the same rows with another token", "two", lines(0, 1000), 2000},
		{"the same rows without a token", "", lines(0, 1000), 3000},
		{"once more without a token", "", lines(0, 1000), 3000},
	} {
		if err := insert(tt.token, tt.data); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := count(); got != tt.want {
			t.Errorf("%s: %d rows, want %d", tt.name, got, tt.want)
		}
	}

	// A token also works for an insert that the engine splits into several blocks.
	blocks := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{
		"insert_deduplication_token": "many", "max_insert_block_size": 1000, "min_insert_block_size_rows": 0, "min_insert_block_size_bytes": 0,
	}))
	for range 2 {
		if err := c.InsertFormat(blocks, "JSONEachRow", "INSERT INTO inserted", strings.NewReader(lines(0, 5000))); err != nil {
			t.Fatal(err)
		}
		if got := count(); got != 8000 {
			t.Errorf("several blocks: %d rows, want 8000", got)
		}
	}
	execute(t, c, "TRUNCATE TABLE inserted")

	if err := insert("bad", lines(0, 10)+"{\"n\": \"x\"}\n"); code(err) != 27 {
		t.Errorf("a bad line: %v, want code 27", err)
	}
	if err := insert("bad", "{\"n\": \"x\"}\n"+lines(0, 200_000)); code(err) != 27 {
		t.Errorf("a bad line before many good ones: %v, want code 27", err)
	}
	if err := insert("bad", `{"n": `); code(err) == 0 {
		t.Errorf("half a line: %v, want an error of the engine", err)
	}
	if err := c.InsertFormat(t.Context(), "JSONEachRow", "INSERT INTO nowhere", strings.NewReader("{}")); code(err) != 60 {
		t.Errorf("an unknown table: %v, want code 60", err)
	}
	readonly := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"readonly": 2}))
	if err := c.InsertFormat(readonly, "JSONEachRow", "INSERT INTO inserted", strings.NewReader(lines(0, 1))); code(err) != 164 {
		t.Errorf("while readonly: %v, want code 164", err)
	}
	if got := count(); got != 0 {
		t.Errorf("after the refused inserts: %d rows, want none", got)
	}
}

// TestInsertAbandoned breaks off an insert in the middle of its rows. None of them may be stored.
func TestInsertAbandoned(t *testing.T) {
	c := connect(t, engine(t))
	execute(t, c, "DROP TABLE IF EXISTS abandoned", "CREATE TABLE abandoned (n UInt64) ENGINE = MergeTree ORDER BY n")
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- c.InsertFormat(ctx, "TSV", "INSERT INTO abandoned", r) }()
	if _, err := io.WriteString(w, strings.Repeat("1\n", 100_000)); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = w.CloseWithError(context.Canceled)
	if err := <-ended; err == nil {
		t.Error("the insert ended without an error")
	}
	eventually(t, "the insert is stopped", func() bool {
		return value[uint64](t, c, t.Context(), "SELECT count() FROM system.processes WHERE query LIKE '%INTO abandoned%' AND query NOT LIKE '%processes%'") == 0
	})
	if n := value[uint64](t, c, t.Context(), "SELECT count() FROM abandoned"); n != 0 {
		t.Errorf("%d rows of an abandoned insert", n)
	}
}

// TestPlainInserts sends rows like users of curl.
func TestPlainInserts(t *testing.T) {
	c := connect(t, engine(t))
	execute(t, c, "DROP TABLE IF EXISTS plain", "CREATE TABLE plain (n UInt64, s String) ENGINE = MergeTree ORDER BY n")
	for i, tt := range []struct{ query, body string }{
		{"", "INSERT INTO plain VALUES (1, 'a;b'), (2, 'FORMAT')"},
		{"", "INSERT INTO plain FORMAT JSONEachRow {\"n\": 1, \"s\": \";\"}\n{\"n\": 2, \"s\": \"x\"}\n"},
		{"", "INSERT INTO plain FORMAT CSV\n1,\"a\"\n2,b\n"},
		{"", "INSERT INTO plain SELECT number + 1, 'x' FROM numbers(2)"},
		{"INSERT INTO plain FORMAT CSV", "1,a\n2,b\n"},
		{"INSERT INTO plain (s, n) FORMAT CSV SETTINGS format_csv_delimiter = ';'", "a;1\nb;2\n"},
		{"INSERT INTO plain (s, n) SETTINGS format_csv_delimiter = ';' FORMAT CSV", "a;1\nb;2\n"},
		{"INSERT INTO plain VALUES", "(1, 'x'), (2, 'y')"},
		{"INSERT INTO plain", "(1, 'x'), (2, 'y')"},
		{"INSERT INTO plain SELECT number + 1, 'x'", "FROM numbers(2)"},
		{"INSERT /* FORMAT x */ INTO plain -- FORMAT y\n FORMAT TSV ;", "1\tx\n2\ty\n"},
	} {
		p := ""
		if tt.query != "" {
			p = "query=" + url.QueryEscape(tt.query)
		}
		res, err := post(t, p, tt.body)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || len(body) != 0 {
			t.Errorf("%q, %q: status %d, %v, %s", tt.query, tt.body, res.StatusCode, err, body)
		}
		if got := value[string](t, c, t.Context(), "SELECT toString((count(), sum(n))) FROM plain"); got != fmt.Sprintf("(%d,%d)", 2*(i+1), 3*(i+1)) {
			t.Errorf("after %q, %q: %s", tt.query, tt.body, got)
		}
	}
	t.Run("compressed answer", func(t *testing.T) {
		for _, encoding := range []string{"gzip", "lz4"} {
			c := connect(t, engine(t), func(o *clickhouse.Options) {
				o.Compression = &clickhouse.Compression{Method: map[string]clickhouse.CompressionMethod{
					"gzip": clickhouse.CompressionGZIP, "lz4": clickhouse.CompressionLZ4,
				}[encoding], Level: gzip.BestSpeed}
				o.Settings = clickhouse.Settings{"enable_http_compression": 1}
			})
			if n := value[uint64](t, c, t.Context(), "SELECT sum(length(s)) FROM (SELECT toString(number) AS s FROM numbers(1000))"); n != 2890 {
				t.Errorf("%s: %d, want 2890", encoding, n)
			}
			rows, err := c.Query(t.Context(), "SELECT number FROM numbers(1000000)")
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for rows.Next() {
				n++
			}
			if rows.Err() != nil || n != 1_000_000 {
				t.Errorf("%s: %d rows, %v", encoding, n, rows.Err())
			}
			_ = rows.Close()
		}
	})
}

func TestGetChangesNothing(t *testing.T) {
	c := connect(t, engine(t))
	execute(t, c, "DROP TABLE IF EXISTS plain", "CREATE TABLE plain (n UInt64) ENGINE = MergeTree ORDER BY n")
	for query, want := range map[string]string{
		"SELECT 1":                     "1\n",
		"INSERT INTO plain VALUES (1)": "Code: 164. DB::Exception: Cannot execute query in readonly mode. (READONLY) (version 26.7.2.1 (official build))\n",
	} {
		u, err := url.Parse(engine(t).DSN())
		if err != nil {
			t.Fatal(err)
		}
		u.Path, u.RawQuery = "/", "query="+url.QueryEscape(query)
		res, err := http.Get(u.String()) // a test
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(body) != want {
			t.Errorf("GET of %q: %v, %q, want %q", query, err, body, want)
		}
	}
}

package clickhouse_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

const benchSQL = "SELECT number, toString(number), number / 3, toDateTime64(number, 6, 'UTC'), number % 2 = 0 FROM numbers(50000)"

// count is a sink that only counts, as a lower bound of what any sink costs.
type count struct{ bytes int64 }

func (*count) Columns([]clickhouse.Column) error { return nil }

func (c *count) Row(json []byte) error {
	c.bytes += int64(len(json))
	return nil
}

// BenchmarkRows reads 50,000 rows to the last byte: as bytes of the HTTP interface, which is the least that it can
// cost; with Query, with and without a column of times; and from blocks.
func BenchmarkRows(b *testing.B) {
	plain := strings.ReplaceAll(benchSQL, "toDateTime64(number, 6, 'UTC')", "number * 2")
	dsn, err := url.Parse(engine.DSN())
	if err != nil {
		b.Fatal(err)
	}
	database := strings.TrimPrefix(dsn.Path, "/")
	dsn.Path = "/"
	dsn.RawQuery = url.Values{
		"database": {database}, "default_format": {"JSONCompactEachRowWithNamesAndTypes"}, "date_time_output_format": {"iso"},
	}.Encode()
	for name, sql := range map[string]string{"times": benchSQL, "plain": plain} {
		b.Run("raw "+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				res, err := http.Post(dsn.String(), "text/plain", strings.NewReader(sql))
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.Copy(io.Discard, res.Body)
				if err != nil || n < 1<<20 {
					b.Fatal(n, err)
				}
				if err := res.Body.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
		c := client(b)
		b.Run("query "+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if stats, err := c.Query(b.Context(), clickhouse.Query{SQL: sql, Project: 1}, &count{}); err != nil || stats.Rows != 50_000 {
					b.Fatal(stats, err)
				}
			}
		})
		b.Run("blocks "+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.QueryBlocks(b.Context(), clickhouse.Query{SQL: sql, Project: 1}, &count{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

//go:build linux || darwin

package embedded_test

import (
	"io"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// BenchmarkQuery measures a whole request: the time in the engine, and the overhead of the HTTP interface.
func BenchmarkQuery(b *testing.B) {
	for _, bm := range []struct{ name, query string }{
		{"one row", "SELECT {n:UInt64}"},
		{"50000 rows", "SELECT number, toString(number), number / {n:UInt64} FROM numbers(50000)"},
	} {
		b.Run(bm.name, func(b *testing.B) {
			c := connect(b, engine(b))
			ctx := clickhouse.Context(b.Context(), clickhouse.WithSettings(clickhouse.Settings{
				"readonly": 2, "max_execution_time": 60, "log_comment": `{"project": 1}`,
			}))
			size := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				r, err := c.QueryFormat(ctx, "JSONCompactEachRowWithNamesAndTypes", bm.query, clickhouse.Named("n", 7))
				if err != nil {
					b.Fatal(err)
				}
				if size, err = io.Copy(io.Discard, r); err != nil {
					b.Fatal(err)
				}
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(size)
		})
	}
}

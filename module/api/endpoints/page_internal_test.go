package endpoints

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// TestLongNames: only pages of objects repeat the names of columns, and only long names of many rows are too much.
func TestLongNames(t *testing.T) {
	built := cache.NewBuilder(cache.Limits{})
	if err := built.Columns([]cache.Column{{Name: "a", Type: "UInt8"}, {Name: "b", Type: "UInt8"}}); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if err := built.Row([]byte("[1,2]")); err != nil {
			t.Fatal(err)
		}
	}
	kept := built.Result()
	const refusal = "400 query_too_large: The names of the columns take 400010 bytes in each of the 1000 rows, and may take 128 MiB in a page. " +
		"Ask for fewer rows, or give the columns shorter names."
	for _, tt := range []struct {
		name   string
		format result.Format
		limit  int
		length int // of the names
		want   string
		of     string // what they consist of; "x" by default
	}{
		{"objects", result.AsObjects, 1000, 400_000, refusal, ""},
		{"all objects", result.AsObjects, -1, 400_000, refusal, ""},
		{"lines", result.AsNDJSON, 1000, 400_000, refusal, ""},
		{"few objects", result.AsObjects, 100, 400_000, "", ""},
		{"short names", result.AsObjects, 1000, 200, "", ""},
		{"names that take six times as much in JSON", result.AsObjects, 1000, 66_668, strings.Replace(refusal, "400010", "400018", 1), "\x01"},
		{"arrays", result.AsArrays, 1000, 400_000, "", ""},
		{"a table", result.AsCSV, 1000, 400_000, "", ""},
	} {
		half := strings.Repeat(cmp.Or(tt.of, "x"), tt.length/2)
		e := cache.NewEntry(kept, time.Now(), &execution.Details{Columns: []string{half, half}}, 0)
		got := ""
		if err := checkPage(&result.Plan{View: result.View{Format: tt.format, Limit: tt.limit}}, e); err != nil {
			got = api.ErrorOf(err).Error()
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

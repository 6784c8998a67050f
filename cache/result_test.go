package cache_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// naive is the simplest form of a result, to compare the real one with.
type naive struct {
	columns []cache.Column
	rows    []string
}

func (n naive) result(tb testing.TB) *cache.Result {
	tb.Helper()
	return n.build(tb, cache.Limits{})
}

func (n naive) build(tb testing.TB, limits cache.Limits) *cache.Result {
	tb.Helper()
	b := cache.NewBuilder(limits)
	if err := b.Columns(n.columns); err != nil {
		tb.Fatalf("Columns: %v", err)
	}
	buffer := make([]byte, 0, 64) // reused as an executor does
	for _, row := range n.rows {
		buffer = append(buffer[:0], row...)
		if err := b.Row(buffer); err != nil {
			tb.Fatalf("Row(%s): %v", row, err)
		}
	}
	return b.Result()
}

// page is rows [offset, offset+limit) as a JSON array.
func (n naive) page(offset, limit int) string {
	var rows []string
	for i, row := range n.rows {
		if i >= offset && (limit < 0 || i < max(offset, 0)+limit) {
			rows = append(rows, row)
		}
	}
	return "[" + strings.Join(rows, ",") + "]"
}

func rowsOf(n int) []string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(`[%d,"commit authored",null]`, i)
	}
	return rows
}

func TestPagesEqualNaiveSlicing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := naive{rows: rapid.SliceOfN(rapid.StringMatching(`\[[0-9a-z",]{0,8}\]`), 0, 20).Draw(rt, "rows")}
		got := want.result(t)
		offset := rapid.IntRange(-2, 24).Draw(rt, "offset")
		limit := rapid.IntRange(-2, 24).Draw(rt, "limit")

		page := want.page(offset, limit)
		if diff := cmp.Diff("x"+page, string(got.AppendRows([]byte("x"), offset, limit))); diff != "" {
			rt.Errorf("AppendRows(%d, %d) (-want +got):\n%s", offset, limit, diff)
		}
		if want := max(0, strings.Count(page, "]")-1); got.PageLen(offset, limit) != want {
			rt.Errorf("PageLen(%d, %d) = %d, want %d", offset, limit, got.PageLen(offset, limit), want)
		}
		after := limit >= 0 && max(offset, 0)+limit < len(want.rows)
		if got.HasMore(offset, limit) != after {
			rt.Errorf("HasMore(%d, %d) = %t, want %t", offset, limit, !after, after)
		}
		var rows []string
		for row := range got.Rows() {
			rows = append(rows, string(row))
		}
		if !slices.Equal(rows, want.rows) || got.Len() != len(want.rows) {
			rt.Errorf("Rows() = %q, Len() = %d, want %q", rows, got.Len(), want.rows)
		}
	})
}

// Paging through a result returns every row once, whatever the page size.
func TestPagesCoverResult(t *testing.T) {
	want := naive{rows: rowsOf(23)}
	result := want.result(t)
	for limit := 1; limit <= 24; limit++ {
		var rows []string
		for offset := 0; ; offset += limit {
			page := string(result.AppendRows(nil, offset, limit))
			rows = append(rows, strings.TrimSuffix(strings.TrimPrefix(page, "["), "]"))
			if !result.HasMore(offset, limit) {
				break
			}
		}
		if diff := cmp.Diff(strings.Join(want.rows, ","), strings.Join(rows, ",")); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", limit, diff)
		}
	}
}

func TestBuilderLimits(t *testing.T) {
	rows := naive{rows: []string{"[1]", "[2]", "[3]"}}
	tests := []struct {
		name    string
		limits  cache.Limits
		want    string
		more    bool
		wantErr string
	}{
		{"none", cache.Limits{}, "[[1],[2],[3]]", false, ""},
		{"keep fewer", cache.Limits{Keep: 2}, "[[1],[2]]", true, ""},
		{"keep as many", cache.Limits{Keep: 3}, "[[1],[2],[3]]", false, ""},
		{"bytes just fit", cache.Limits{MaxBytes: 11}, "[[1],[2],[3]]", false, ""},
		{"too many bytes", cache.Limits{MaxBytes: 10}, "", false, "the result is too large: more than 10 bytes"},
		{"rows left out take no bytes", cache.Limits{Keep: 2, MaxBytes: 7}, "[[1],[2]]", true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := cache.NewBuilder(tt.limits)
			if err := b.Columns([]cache.Column{{Name: "other"}}); err != nil {
				t.Fatal(err)
			}
			if err := b.Row([]byte(`["of before"]`)); err == nil && tt.limits.Keep > 0 {
				_ = b.Row([]byte("[0]")) // more than are kept, perhaps
			}
			b.Reset()
			err := b.Columns(nil)
			for _, row := range rows.rows {
				if err == nil {
					err = b.Row([]byte(row))
				}
			}
			if diff := cmp.Diff(tt.wantErr, errText(err)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if err != nil {
				if !errors.Is(err, cache.ErrTooLarge) {
					t.Errorf("%v is not ErrTooLarge", err)
				}
				return
			}
			result := b.Result()
			if diff := cmp.Diff(tt.want, string(result.AppendRows(nil, 0, -1))); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if result.More() != tt.more || result.HasMore(0, 3) != tt.more {
				t.Errorf("More() = %t, HasMore(0, 3) = %t, want %t", result.More(), result.HasMore(0, 3), tt.more)
			}
		})
	}
}

func TestBuilderMisuse(t *testing.T) {
	columns := []cache.Column{{Name: "n", Type: "UInt64"}}
	tests := []struct {
		name string
		use  func(*cache.Builder) error
		want string
	}{
		{"row before columns", func(b *cache.Builder) error { return b.Row([]byte("[1]")) }, "row of a result added before its columns"},
		{"columns twice", func(b *cache.Builder) error {
			return errors.Join(b.Columns(columns), b.Columns(columns))
		}, "columns of a result set twice"},
		{"object for a row", func(b *cache.Builder) error {
			return errors.Join(b.Columns(columns), b.Row([]byte(`{"n":1}`)))
		}, "row of a result is not a JSON array"},
		{"empty row", func(b *cache.Builder) error {
			return errors.Join(b.Columns(columns), b.Row(nil))
		}, "row of a result is not a JSON array"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, errText(tt.use(new(cache.Builder)))); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResultKeepsItsColumns(t *testing.T) {
	columns := []cache.Column{{Name: "event", Type: "String"}, {Name: "n", Type: "UInt64"}}
	result := naive{columns: columns}.result(t)
	columns[0].Name = "changed by the caller"
	want := []cache.Column{{Name: "event", Type: "String"}, {Name: "n", Type: "UInt64"}}
	if diff := cmp.Diff(want, result.Columns()); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

// The size counts towards the budget, so it must match the memory that is really used.
func TestResultSize(t *testing.T) {
	const rows = 10_000
	small, large := naive{rows: rowsOf(1)}.result(t), naive{rows: rowsOf(rows)}.result(t)
	data := int64(len(large.AppendRows(nil, 0, -1)))
	least, most := data+4*rows, (data+4*rows)*9/8+1024
	if large.Size() < least || large.Size() > most {
		t.Errorf("Size() = %d, want %d to %d", large.Size(), least, most)
	}
	if small.Size() > 1024 {
		t.Errorf("Size() of one row = %d", small.Size())
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

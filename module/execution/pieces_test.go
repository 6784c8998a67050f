package execution

import (
	"errors"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// TestPieceRows: rows go to the pieces whose indexes they begin with, and rows of other pieces are an error.
func TestPieceRows(t *testing.T) {
	var columns []cache.Column
	sink := &pieceSink{columns: &columns, places: make([]*cache.Builder, 4)}
	for _, i := range []int{1, 3} {
		sink.places[i] = cache.NewBuilder(cache.Limits{})
		if err := sink.places[i].Columns(nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.Columns([]clickhouse.Column{{Name: "place", Type: "Int64"}, {Name: "n", Type: "UInt64"}}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{`[3,"a, b",[1,2]]`, `[1]`, `["3",null]`, `[1, 5]`} {
		if err := sink.Row([]byte(row)); err != nil {
			t.Errorf("%s: %v", row, err)
		}
	}
	if len(columns) != 1 || columns[0].Name != "n" {
		t.Errorf("the columns are %v", columns)
	}
	for i, want := range map[int]string{1: `[[],[5]]`, 3: `[["a, b",[1,2]],[null]]`} {
		if got := string(sink.places[i].Result().AppendRows(nil, 0, -1)); got != want {
			t.Errorf("piece %d has %s, want %s", i, got, want)
		}
	}
	for _, row := range []string{`[2,1]`, `[4,1]`, `[-1,1]`, `[null,1]`, `["x",1]`, `[1.5,1]`, `7,1]`, `[]`, ``} {
		if err := sink.Row([]byte(row)); err == nil {
			t.Errorf("%s is a row of a piece", row)
		}
	}
}

// TestWhatPiecesCannotTell: the whole query runs after an error that only the pieces may have, and not after one that it would have too.
func TestWhatPiecesCannotTell(t *testing.T) {
	for kind, want := range map[clickhouse.ErrorKind]bool{
		clickhouse.UserError: true, clickhouse.Unrunnable: true, clickhouse.TooLarge: true,
		clickhouse.Unavailable: false, clickhouse.Busy: false, clickhouse.Timeout: false, clickhouse.TooSlow: false, clickhouse.Memory: false, clickhouse.Internal: false,
	} {
		if got := byPieces(t.Context(), &clickhouse.Error{Kind: kind}); got != want {
			t.Errorf("%s: %t, want %t", kind, got, want)
		}
	}
	if byPieces(t.Context(), &LimitError{}) {
		t.Error("a query that is refused runs as a whole")
	}
	if !byPieces(t.Context(), errors.New("a row without its place")) {
		t.Error("a mistake of ours is for the caller to see")
	}
}

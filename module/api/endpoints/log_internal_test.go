package endpoints

import (
	"net/http"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
)

// TestPathsOfRuns checks where the log says that the rows of a run are from. The runs have been through a log.
func TestPathsOfRuns(t *testing.T) {
	t.Parallel()
	tests := []struct {
		source runlog.Source
		status int
		want   string
	}{
		{runlog.Inline, http.StatusOK, "Endpoint executed · path=inline cache=hit duration_ms=3 rows=2 version=1"},
		{runlog.Materialized, http.StatusOK, "Endpoint executed · path=materialized cache=hit duration_ms=3 rows=2 version=1"},
		{runlog.Unrecorded, http.StatusOK, "Endpoint executed · cache=hit duration_ms=3 rows=2 version=1"},
		{runlog.Inline, http.StatusBadRequest, "Endpoint execution failed · path=inline duration_ms=3 rows=2 version=1"},
	}
	for _, tt := range tests {
		log := runlog.New(time.Now()).Of(1, "e")
		log.Add(runlog.Run{At: time.Now(), Took: 3 * time.Millisecond, Version: 1, Rows: 2, Status: tt.status, Cache: cache.Hit, Source: tt.source})
		runs := log.All()
		if len(runs) != 1 {
			t.Fatalf("%d runs are kept", len(runs))
		}
		if got := logEntryOf(&runs[0], "e").Message; got != tt.want {
			t.Errorf("source %d: %q, want %q", tt.source, got, tt.want)
		}
	}
}

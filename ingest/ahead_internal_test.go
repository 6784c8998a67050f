package ingest

import (
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

type panicking struct{}

func (panicking) Read() (record.Record, error) { panic("a defect") }

// TestPanicsSayWhere: a panic of a reader is reported with its stack.
func TestPanicsSayWhere(t *testing.T) {
	a := readAhead(1, panicking{}, 10)
	for range a.full {
		t.Error("a batch was read")
	}
	if !strings.HasPrefix(a.failed, "a defect\n") || !strings.Contains(a.failed, "panicking") {
		t.Errorf("%q", a.failed)
	}
}

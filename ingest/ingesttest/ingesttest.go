// Package ingesttest makes readers of records for tests.
package ingesttest

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
)

// Lines returns a reader of records from lines of NDJSON.
func Lines(lines ...string) *formats.Reader {
	return formats.New(strings.NewReader(strings.Join(lines, "\n")), formats.Options{Format: formats.NDJSON})
}

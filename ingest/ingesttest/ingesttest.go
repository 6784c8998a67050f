// Package ingesttest makes readers of records for tests.
package ingesttest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
)

// Lines returns a reader of records from lines of NDJSON.
func Lines(lines ...string) *formats.Reader {
	return formats.New(strings.NewReader(strings.Join(lines, "\n")), formats.Options{Format: formats.NDJSON})
}

// Records returns a reader of records that are given as values, each of which is encoded as JSON.
func Records(tb testing.TB, records ...any) *formats.Reader {
	tb.Helper()
	var lines bytes.Buffer
	out := json.NewEncoder(&lines)
	for _, record := range records {
		if err := out.Encode(record); err != nil {
			tb.Fatal(err)
		}
	}
	return formats.New(&lines, formats.Options{Format: formats.NDJSON})
}

// Package ndjson reads records from lines of JSON.
package ndjson

import (
	"io"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
)

// NewReader returns a reader of records from NDJSON, plain or compressed. It returns a *record.Error for a line that cannot be used.
func NewReader(in io.Reader) *formats.Reader {
	return formats.New(in, formats.Options{Format: formats.NDJSON})
}

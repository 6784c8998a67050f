// Package ndjson reads records from lines of JSON.
package ndjson

import (
	"io"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
)

// NewReader returns a reader of records from NDJSON, plain or compressed. A line that cannot be used is a *record.Error.
func NewReader(in io.Reader) *formats.Reader {
	return formats.New(in, formats.Options{Format: formats.NDJSON})
}

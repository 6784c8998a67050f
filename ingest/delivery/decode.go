package delivery

import (
	"bytes"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// decode reads the records of an entry, one per line.
func decode(entry *journal.Entry, parser *record.Parser) ([]record.Record, error) {
	records := make([]record.Record, 0, entry.Events)
	for line := range bytes.Lines(entry.Data) {
		r, err := parser.Parse(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return nil, fmt.Errorf("reading event %d of the request: %w", len(records)+1, err)
		}
		r.Arrived = entry.Arrived
		records = append(records, r)
	}
	return records, nil
}

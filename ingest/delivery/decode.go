package delivery

import (
	"bytes"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// deliveredRecords is how many records are decoded and delivered at once: a record takes far more memory than a short line of an entry.
const deliveredRecords = 10_000

// some is the next records of a part.
type some struct {
	records []record.Record
	lines   [][]byte // of the records
	ends    []int    // for each entry that ends among them, the number of records up to its end
	at      int      // bytes of the entry after these that belong to records
	// Why the entry after these can't be read; nil if it can. None of its records are among the records.
	unreadable error
}

// next decodes the next records, one per line.
func (p *part) next(parser *record.Parser) some {
	var s some
	at := p.at
	for _, entry := range p.entries {
		first := len(s.records)
		for at < len(entry.Data) && len(s.records) < deliveredRecords {
			line, _, _ := bytes.Cut(entry.Data[at:], []byte("\n"))
			r, err := parser.Parse(line)
			if err != nil {
				s.unreadable = fmt.Errorf("reading event %d of the request: %w", 1+bytes.Count(entry.Data[:at], []byte("\n")), err)
				s.records, s.lines = s.records[:first], s.lines[:first]
				return s
			}
			at += len(line) + 1
			r.Arrived, r.Line = entry.Arrived, len(s.records)+1
			s.records, s.lines = append(s.records, r), append(s.lines, line)
		}
		if at < len(entry.Data) {
			s.at = at
			return s
		}
		s.ends = append(s.ends, len(s.records))
		at = 0
	}
	return s
}

package embedded

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// The library encodes each piece of a streamed result as a complete document. Pieces of row formats without a
// header can be concatenated; for formats with a header, all but the first piece lose it; documents in other
// formats come through a pipe.

// headerKind is the kind of header before the rows.
type headerKind uint8

const (
	headerNone   headerKind = iota
	headerLines             // a line of names, and maybe a line of types
	headerCSV               // the same, but a quoted name may contain a newline
	headerBinary            // a count, then the names, then maybe the types
	headerArrow             // a message with the schema; the rows end with a mark
)

type rowFormat struct {
	header headerKind
	lines  int // the number of lists in the header: 1 for names, 2 for names and types
}

// rowFormats are the formats that are streamed, in lower case.
var rowFormats = func() map[string]rowFormat {
	formats := map[string]rowFormat{
		"native": {}, "tskv": {}, "tsvraw": {}, "tabseparatedraw": {}, "jsonstringseachrow": {}, "jsoneachrow": {}, "jsonlines": {}, "ndjson": {}, "msgpack": {},
	}
	for header, names := range map[headerKind][]string{
		headerLines:  {"tsv", "tabseparated", "jsoncompacteachrow", "jsoncompactstringseachrow"},
		headerCSV:    {"csv"},
		headerBinary: {"rowbinary"},
	} {
		for _, name := range names {
			formats[name] = rowFormat{}
			formats[name+"withnames"] = rowFormat{header, 1}
			formats[name+"withnamesandtypes"] = rowFormat{header, 2}
		}
	}
	formats["arrowstream"] = rowFormat{header: headerArrow}
	return formats
}()

// streamable returns how to join the pieces of a format.
func streamable(format string) (rowFormat, bool) {
	f, ok := rowFormats[strings.ToLower(format)]
	return f, ok
}

// headerSize returns the size of the header at the start of a piece.
func (f rowFormat) headerSize(piece []byte) int {
	switch f.header {
	case headerNone:
		return 0
	case headerBinary:
		return binaryHeaderSize(piece, f.lines)
	case headerArrow:
		return arrowHeaderSize(piece)
	case headerLines, headerCSV:
	}
	lines, quoted := 0, false
	for i, c := range piece {
		switch {
		case c == '"' && f.header == headerCSV:
			quoted = !quoted
		case c == '\n' && !quoted:
			if lines++; lines == f.lines {
				return i + 1
			}
		}
	}
	return len(piece)
}

// binaryHeaderSize returns the size of a count followed by lists of that many strings.
func binaryHeaderSize(piece []byte, lists int) int {
	columns, at := binary.Uvarint(piece)
	if at <= 0 {
		return len(piece)
	}
	for range columns * uint64(lists) { //nolint:gosec // lists is 1 or 2
		size, n := binary.Uvarint(piece[at:])
		if n <= 0 || size > uint64(len(piece)) || int(size) > len(piece)-at-n { //nolint:gosec // smaller than the piece
			return len(piece)
		}
		at += n + int(size) //nolint:gosec // smaller than the piece
	}
	return at
}

// arrowEnd ends a stream of Arrow's IPC format.
var arrowEnd = []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// arrowHeaderSize returns the size of the first message of an Arrow stream, the schema: a mark, the size of the rest, and the rest.
func arrowHeaderSize(piece []byte) int {
	const lead = 8
	if len(piece) < lead {
		return len(piece)
	}
	return min(len(piece), lead+int(binary.LittleEndian.Uint32(piece[4:lead])))
}

// joiner removes the repeated headers from the pieces of a result.
type joiner struct {
	format rowFormat
	header []byte
	begun  bool
}

// join returns the part of the next piece to send.
func (j *joiner) join(piece []byte) []byte {
	switch j.format.header {
	case headerNone:
		return piece
	case headerArrow:
		piece = bytes.TrimSuffix(piece, arrowEnd)
	case headerLines, headerCSV, headerBinary:
	}
	if !j.begun {
		j.begun = true
		j.header = bytes.Clone(piece[:j.format.headerSize(piece)])
		return piece
	}
	return bytes.TrimPrefix(piece, j.header)
}

// end returns what to send after the last piece.
func (j *joiner) end() []byte {
	if j.format.header == headerArrow && j.begun {
		return arrowEnd
	}
	return nil
}

// contentType returns the media type that a ClickHouse server sends for a format.
func contentType(format string) string {
	name := strings.ToLower(format)
	switch {
	case strings.HasPrefix(name, "json") && strings.Contains(name, "eachrow"), name == "jsonlines", name == "ndjson":
		return "application/x-ndjson; charset=UTF-8"
	case strings.HasPrefix(name, "json"):
		return "application/json; charset=UTF-8"
	case strings.HasPrefix(name, "csv"):
		if strings.Contains(name, "withnames") {
			return "text/csv; charset=UTF-8; header=present"
		}
		return "text/csv; charset=UTF-8; header=absent"
	case strings.HasPrefix(name, "tsv"), strings.HasPrefix(name, "tabseparated"):
		return "text/tab-separated-values; charset=UTF-8"
	case name == "xml":
		return "application/xml; charset=UTF-8"
	case name == "native", name == "msgpack", name == "orc", name == "avro",
		strings.HasPrefix(name, "rowbinary"), strings.HasPrefix(name, "parquet"), strings.HasPrefix(name, "arrow"):
		return "application/octet-stream"
	}
	return "text/plain; charset=UTF-8"
}

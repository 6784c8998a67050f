package embedded

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// The library encodes each piece of a streamed result as a whole document of its own. Pieces of row formats
// without a header can be sent one after the other; of formats with a header all but the first lose it; a
// document of any other format comes through a pipe.

// headerKind says what a format puts in front of its rows.
type headerKind uint8

const (
	headerNone   headerKind = iota
	headerLines             // names, or names and types, each on a line
	headerCSV               // the same, but a quoted name may hold a line break
	headerBinary            // a count, then the names, then maybe the types
	headerArrow             // a message with the schema; the rows end with a mark
)

type rowFormat struct {
	header headerKind
	lines  int // how many lists the header holds: 1 names, 2 names and types
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

// streamable gives the way to join the pieces of a format.
func streamable(format string) (rowFormat, bool) {
	f, ok := rowFormats[strings.ToLower(format)]
	return f, ok
}

// headerSize gives how many bytes at the start of a piece are the header.
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

// binaryHeaderSize measures a count and that many strings, the strings as often as there are lists.
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

// arrowHeaderSize measures the first message of an Arrow stream, the schema: a mark, the size of what follows, and that.
func arrowHeaderSize(piece []byte) int {
	const lead = 8
	if len(piece) < lead {
		return len(piece)
	}
	return min(len(piece), lead+int(binary.LittleEndian.Uint32(piece[4:lead])))
}

// joiner drops the repeated headers from the pieces of one result.
type joiner struct {
	format rowFormat
	header []byte
	begun  bool
}

// join gives what to send of the next piece.
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

// end gives what to send behind the last piece.
func (j *joiner) end() []byte {
	if j.format.header == headerArrow && j.begun {
		return arrowEnd
	}
	return nil
}

// contentType is the media type that a ClickHouse server gives a format.
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

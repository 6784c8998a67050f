package result

import (
	"mime"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/rows"
)

// Format is the form in which a run returns its rows.
type Format uint8

const (
	AsArrays  Format = iota // each row an array, as PostHog does
	AsObjects               // the same answer, each row an object
	AsCSV                   // this and the following are files
	AsNDJSON
	AsParquet
	AsArrow
)

// formatNames holds the names of a format for callers and files.
type formatNames struct {
	Name  string                // in the field format, and as the suffix of a path
	media string                // in Accept
	Type  string                // Content-Type
	File  clickhouse.FileFormat // if ClickHouse writes it itself
}

// Formats holds the names of each format.
var Formats = [...]formatNames{
	AsArrays:  {Name: "arrays", media: "application/json", Type: api.JSONType},
	AsObjects: {Name: "objects", media: "application/json", Type: api.JSONType},
	AsCSV:     {Name: "csv", media: "text/csv", Type: "text/csv; charset=utf-8; header=present"},
	AsNDJSON:  {Name: "ndjson", media: "application/x-ndjson", Type: "application/x-ndjson"},
	AsParquet: {Name: "parquet", media: "application/vnd.apache.parquet", Type: "application/vnd.apache.parquet", File: clickhouse.Parquet},
	AsArrow:   {Name: "arrow", media: "application/vnd.apache.arrow.stream", Type: "application/vnd.apache.arrow.stream", File: clickhouse.Arrow},
}

// String returns the name of the format.
func (f Format) String() string { return Formats[f].Name }

// IsFile reports whether the format is a file rather than a JSON answer.
func (f Format) IsFile() bool { return f >= AsCSV }

// ParseFormat parses the name of a format. Clients of PostHog may ask for json, its only format.
func ParseFormat(name string) (Format, bool) {
	if name == "json" {
		return AsArrays, true
	}
	i := slices.IndexFunc(Formats[:], func(f formatNames) bool { return f.Name == name })
	return Format(max(i, 0)), i >= 0 //nolint:gosec // there are six
}

// AcceptedFormat parses an Accept header. Rows as objects are application/json;profile=objects.
func AcceptedFormat(header string) Format {
	best, bestWeight := AsArrays, 0.0
	for element := range strings.SplitSeq(header, ",") {
		media, parameters, err := mime.ParseMediaType(element)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, ok := parameters["q"]; ok {
			if weight, err = strconv.ParseFloat(q, 64); err != nil {
				continue
			}
		}
		if !(weight > bestWeight) {
			continue
		}
		if f, ok := formatOfMedia(media, parameters["profile"]); ok {
			best, bestWeight = f, weight
		}
	}
	return best
}

func formatOfMedia(media, profile string) (Format, bool) {
	switch media {
	case "*/*", "application/*":
		return AsArrays, true
	case "application/json":
		if profile == AsObjects.String() {
			return AsObjects, true
		}
		return AsArrays, true
	case "application/ndjson", "application/jsonl", "application/x-jsonlines":
		return AsNDJSON, true
	case "application/parquet":
		return AsParquet, true
	}
	for i := AsCSV; int(i) < len(Formats); i++ {
		if Formats[i].media == media {
			return i, true
		}
	}
	return AsArrays, false
}

// Streams reports whether the rows bypass the cache: those of whole files, of files that ClickHouse writes, and of pages of a file beyond the rows that a
// result can hold. Other pages of files are cut from a result, like those of JSON answers.
func (p *Plan) Streams() bool {
	switch {
	case !p.Format.IsFile(), p.Ref != (cache.Ref{}):
		return false
	case Formats[p.Format].File != "" || !p.IsPage():
		return true
	}
	return p.Limit > execution.MaxRows-p.Offset
}

// AppendRows appends the rows of a page in the plan's format, as one JSON array.
func (p *Plan) AppendRows(dst []byte, result *cache.Result, columns []string) []byte {
	write := p.RowWriter(columns, TypesOf(result))
	if write == nil {
		return result.AppendRows(dst, p.Offset, p.Limit)
	}
	dst = append(dst, '[')
	for i := range result.PageLen(p.Offset, p.Limit) {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = write(dst, result.Row(p.Offset+i)); err != nil {
			panic("BUG: a row that was kept: " + err.Error())
		}
	}
	return append(dst, ']')
}

// TypesOf returns the ClickHouse types of the columns of a result.
func TypesOf(result *cache.Result) []string {
	types := make([]string, len(result.Columns()))
	for i, c := range result.Columns() {
		types[i] = c.Type
	}
	return types
}

// RowWriter returns the function that appends a row as JSON in the plan's format; nil if rows are already stored in it.
func (p *Plan) RowWriter(columns, types []string) func(dst, row []byte) ([]byte, error) {
	var wide *rows.Wide
	if p.WideAsText {
		wide = rows.NewWide(types)
	}
	if p.Format == AsArrays {
		if wide == nil {
			return nil
		}
		return wide.Append
	}
	objects := rows.NewObjects(columns)
	if wide == nil {
		return objects.Append
	}
	var text []byte
	return func(dst, row []byte) (_ []byte, err error) {
		if text, err = wide.Append(text[:0], row); err != nil {
			return dst, err
		}
		return objects.Append(dst, text)
	}
}

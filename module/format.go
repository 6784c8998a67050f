package module

import (
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/rows"
)

// format is the form in which a run gives its rows.
type format uint8

const (
	asArrays  format = iota // the contract's: each row an array
	asObjects               // the same answer, each row an object
	asCSV                   // from here on they are files
	asNDJSON
	asParquet
	asArrow
)

// formatNames are what callers and files call a format.
type formatNames struct {
	name   string                // in the field format, and as the suffix of an address
	media  string                // in Accept
	header []string              // Content-Type
	file   clickhouse.FileFormat // where ClickHouse writes it itself
}

var formats = [...]formatNames{
	asArrays:  {name: "arrays", media: "application/json", header: api.JSONType},
	asObjects: {name: "objects", media: "application/json", header: api.JSONType},
	asCSV:     {name: "csv", media: "text/csv", header: []string{"text/csv; charset=utf-8; header=present"}},
	asNDJSON:  {name: "ndjson", media: "application/x-ndjson", header: []string{"application/x-ndjson"}},
	asParquet: {name: "parquet", media: "application/vnd.apache.parquet", header: []string{"application/vnd.apache.parquet"}, file: clickhouse.Parquet},
	asArrow:   {name: "arrow", media: "application/vnd.apache.arrow.stream", header: []string{"application/vnd.apache.arrow.stream"}, file: clickhouse.Arrow},
}

func (f format) String() string { return formats[f].name }

// isFile tells the files from the JSON answers.
func (f format) isFile() bool { return f >= asCSV }

// streams tells whether the rows go past the cache: those of whole files, of files that ClickHouse writes, and of pages of a file
// that reach behind the rows that a result holds. The other pages of files are cut from a result, as those of JSON answers are.
func (p *plan) streams() bool {
	switch {
	case !p.format.isFile(), p.ref != (cache.Ref{}):
		return false
	case formats[p.format].file != "" || !p.isPage():
		return true
	}
	return p.limit > execution.MaxRows-p.offset
}

// parseFormat reads the name of a format. Clients of the peer may ask for json, which is all that it gives.
func parseFormat(name string) (format, bool) {
	if name == "json" {
		return asArrays, true
	}
	i := slices.IndexFunc(formats[:], func(f formatNames) bool { return f.name == name })
	return format(max(i, 0)), i >= 0 //nolint:gosec // there are six
}

// askedFormat is the format that the address or the Accept header asks for. The address is exact; of the header's types the one
// that is liked best counts, and one that there is not counts as absent.
func (rq *request) askedFormat() (f format, exact bool) {
	if _, suffix, ok := strings.Cut(rq.at.Action, "."); ok {
		f, _ = parseFormat(suffix)
		return f, true
	}
	accept := rq.r.Header["Accept"]
	if len(accept) == 0 || accept[0] == "*/*" || accept[0] == "application/json" {
		return asArrays, false
	}
	return acceptedFormat(strings.Join(accept, ",")), false
}

// acceptedFormat reads an Accept header. Rows as objects are application/json;profile=objects.
func acceptedFormat(header string) format {
	best, bestWeight := asArrays, 0.0
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

func formatOfMedia(media, profile string) (format, bool) {
	switch media {
	case "*/*", "application/*":
		return asArrays, true
	case "application/json":
		if profile == asObjects.String() {
			return asObjects, true
		}
		return asArrays, true
	case "application/ndjson", "application/jsonl", "application/x-jsonlines":
		return asNDJSON, true
	case "application/parquet":
		return asParquet, true
	}
	for i := asCSV; int(i) < len(formats); i++ {
		if formats[i].media == media {
			return i, true
		}
	}
	return asArrays, false
}

// readFormat reads the field format of a run, from the body or from the query string, and puts it over what the request's
// headers ask for.
func (rq *request) readFormat(p *plan, node query.Node, fields map[string]json.RawMessage) error {
	asked, exact := rq.askedFormat()
	p.format = asked
	name := rq.r.URL.Query().Get("format")
	if _, err := api.Field(fields, "format", &name); err != nil {
		return err
	}
	if name != "" {
		given, ok := parseFormat(name)
		switch {
		case !ok:
			return api.Invalid("format", "invalid_input", "Input should be 'arrays', 'objects', 'csv', 'ndjson', 'parquet' or 'arrow'")
		case exact && given != asked:
			return api.Invalid("format", "invalid_input", "The address asks for %s, the field for %s.", asked, given)
		}
		p.format = given
	}
	if _, ok := node.(*query.HogQL); ok {
		if p.format.isFile() {
			p.attachment = []string{`attachment; filename="` + p.Endpoint.Name + "." + p.format.String() + `"`}
		}
		return nil
	}
	if p.format.isFile() {
		return api.Invalid("format", "invalid_input", "%s is only supported for HogQLQuery, not %s", p.format, node.Kind())
	}
	p.format = asArrays // the items of an insight are objects as they are
	return nil
}

// appendRows appends the rows of a page in the plan's format, as one JSON array.
func (p *plan) appendRows(dst []byte, result *cache.Result, columns []string) []byte {
	if p.format != asObjects {
		return result.AppendRows(dst, p.offset, p.limit)
	}
	objects := rows.NewObjects(columns)
	dst = append(dst, '[')
	for i := range result.PageLen(p.offset, p.limit) {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = objects.Append(dst, result.Row(p.offset+i)); err != nil {
			panic("BUG: a row that was kept: " + err.Error())
		}
	}
	return append(dst, ']')
}

// renderFile writes a page of a result as a file.
func (*request) renderFile(dst []byte, p *plan, got cache.Answer) []byte {
	result := got.Entry.Result
	done, _ := got.Entry.Meta.(*execution.Details)
	line := lineOf(p.format, done.Columns)
	if p.format == asCSV {
		dst = rows.AppendCSVHeader(dst, done.Columns)
	}
	for i := range result.PageLen(p.offset, p.limit) {
		var err error
		if dst, err = line(dst, result.Row(p.offset+i)); err != nil {
			panic("BUG: a row that was kept: " + err.Error())
		}
	}
	return dst
}

// lineOf gives the function that appends a row to a file of lines, CSV or NDJSON.
func lineOf(f format, columns []string) func(dst, row []byte) ([]byte, error) {
	if f == asCSV {
		return func(dst, row []byte) ([]byte, error) { return rows.AppendCSV(dst, row, len(columns)) }
	}
	objects := rows.NewObjects(columns)
	return func(dst, row []byte) ([]byte, error) {
		dst, err := objects.Append(dst, row)
		return append(dst, '\n'), err
	}
}

// noSniff is sent with files: one may hold what a browser would take for a page.
var noSniff = []string{"nosniff"}

// setFileHeaders sets the headers of a page of a result that is sent as a file. Its rows leave no room for what a JSON answer says
// beside them.
func (rq *request) setFileHeaders(p *plan, got cache.Answer) {
	h := rq.w.Header()
	h["Content-Disposition"] = p.attachment
	h["X-Content-Type-Options"] = noSniff
	next := p.next.Load()
	if next == nil || next.entry != got.Entry.ID() {
		next = &nextHeader{entry: got.Entry.ID()}
		if text, ok := rq.appendNextCursor(nil, p, got); ok {
			next.values = []string{string(text)}
		}
		p.next.Store(next)
	}
	if next.values != nil {
		h["Next-Cursor"] = next.values
	}
}

// nextHeader is the header Next-Cursor of a page of one result; without values where no page follows.
type nextHeader struct {
	entry  uint64
	values []string
}

// runRoutes are the addresses of a run: the plain one, and one for each other format.
func runRoutes() map[address]methods {
	run := route{scope: "endpoint:read", secretKeys: true, serve: (*request).runEndpoint}
	all := map[address]methods{}
	for f, names := range formats {
		at := address{resource: "endpoints", name: ":name", action: "run." + names.name}
		if format(f) == asArrays {
			at.action = "run"
		}
		all[at] = methods{http.MethodGet: run, http.MethodPost: run}
	}
	return all
}

package endpoints

import (
	"maps"
	"net/http"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/rows"
)

// askedFormat returns the format requested by the path or by the Accept header. exact reports whether the path names it. In the header, the type with the
// largest weight counts; an unknown type is ignored.
func askedFormat(in *api.Input) (f result.Format, exact bool) {
	if _, suffix, ok := strings.Cut(in.At.Action, "."); ok {
		f, _ = result.ParseFormat(suffix)
		return f, true
	}
	return result.AskedFormat(in), false
}

// format reads the field format of a run, from the body or the query string. It takes precedence over the request's headers.
func (p *planner) format(node query.Node) (err error) {
	asked, exact := askedFormat(p.in)
	p.Format = asked
	if p.WideAsText, err = wideAsText(p.in); err != nil {
		return err
	}
	name := p.in.URL.Query().Get("format")
	if _, err := api.Field(p.fields, "format", &name); err != nil {
		return err
	}
	if name != "" {
		given, ok := result.ParseFormat(name)
		switch {
		case !ok:
			return api.Invalid("format", "invalid_input", "Input should be 'arrays', 'objects', 'csv', 'ndjson', 'parquet' or 'arrow'")
		case exact && given != asked:
			return api.Invalid("format", "invalid_input", "The address asks for %s, the field for %s.", asked, given)
		}
		p.Format = given
	}
	if _, ok := node.(*query.HogQL); ok {
		if p.Format.IsFile() {
			p.Attachment = []string{`attachment; filename="` + p.Endpoint.Name + "." + p.Format.String() + `"`}
		}
		return nil
	}
	if p.Format.IsFile() {
		return api.Invalid("format", "invalid_input", "%s is only supported for HogQLQuery, not %s", p.Format, node.Kind())
	}
	p.Format = result.AsArrays // the items of an insight are objects anyway
	return nil
}

// wideAsText reports whether integers of more than 53 bits are returned as strings: the parameter int64 is string or number, the default.
func wideAsText(in *api.Input) (bool, error) {
	switch in.URL.Query().Get("int64") {
	case "", "number":
		return false, nil
	case "string":
		return true, nil
	}
	return false, api.Invalid("int64", "invalid_input", "Input should be 'number' or 'string'")
}

// writeFile writes a page of a result as a file.
func writeFile(dst []byte, p *result.Plan, got cache.Answer) []byte {
	kept := got.Entry.Result
	done, _ := got.Entry.Meta.(*execution.Details)
	line := lineOf(p, done.Columns, result.TypesOf(kept))
	if p.Format == result.AsCSV {
		dst = rows.AppendCSVHeader(dst, done.Columns)
	}
	for i := range kept.PageLen(p.Offset, p.Limit) {
		var err error
		if dst, err = line(dst, kept.Row(p.Offset+i)); err != nil {
			panic("BUG: a row that was kept: " + err.Error())
		}
	}
	return dst
}

// lineOf returns the function that appends a row to a file of lines, CSV or NDJSON.
func lineOf(p *result.Plan, columns, types []string) func(dst, row []byte) ([]byte, error) {
	if p.Format == result.AsCSV {
		return func(dst, row []byte) ([]byte, error) { return rows.AppendCSV(dst, row, len(columns)) }
	}
	object := p.RowWriter(columns, types)
	return func(dst, row []byte) ([]byte, error) {
		dst, err := object(dst, row)
		return append(dst, '\n'), err
	}
}

// noSniff is sent with files, whose contents a browser could take for HTML.
const noSniff = "nosniff"

// fileHeaders returns the headers of a result page sent as a file. They hold what a JSON answer would say next to its rows.
func (s *Runs) fileHeaders(p *result.Plan, got cache.Answer) http.Header {
	next := p.Next.Load()
	if next == nil || next.Entry != got.Entry.ID() {
		h := http.Header{"Content-Disposition": p.Attachment, "X-Content-Type-Options": {noSniff}}
		maps.Copy(h, p.Notices)
		if text, ok := appendNextCursor(nil, s.Executor.Cache, p, got); ok {
			h["Next-Cursor"] = []string{string(text)}
		}
		next = &result.FileHeader{Entry: got.Entry.ID(), Header: h}
		p.Next.Store(next)
	}
	return next.Header
}

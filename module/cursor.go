package module

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/pagecursor"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

var (
	// errNoCursor is the refusal of what is no cursor, or one of another endpoint, project, or customer: which of these is not told.
	errNoCursor = api.Invalid("cursor", "invalid_input", "This is not a cursor of this endpoint.")
	// errCursorExpired is an error of its own, so that a client can tell that to begin again will help.
	errCursorExpired = api.Gone("cursor", "cursor_expired", "The rows that this cursor pages through are no longer kept. Begin again without a cursor.")
)

// owner is whom the cursors of a run are for: those who may run the endpoint with the variables that the key fixes.
func (rq *request) owner(e *registry.Endpoint) []byte {
	owner := binary.BigEndian.AppendUint64(nil, uint64(rq.Project.ID)) //nolint:gosec // any number will do, if it is another for another project
	owner = binary.BigEndian.AppendUint64(owner, uint64(len(e.ID)))
	owner = append(owner, e.ID...)
	return append(owner, rq.Key.Fixed...)
}

// appendNextCursor appends the cursor of the page after the plan's, and reports whether there is one. From now on the snapshot is kept
// for those who page through it.
func (rq *request) appendNextCursor(dst []byte, p *result.Plan, got cache.Answer) ([]byte, bool) {
	kept := got.Entry.Result
	if !p.IsPage() || !kept.HasMore(p.Offset, p.Limit) {
		return dst, false
	}
	if p.Example {
		return append(dst, exampleCursor...), true
	}
	next := pagecursor.Cursor{
		Ref: rq.rt.Cache.Refer(p.Key, got.Entry), Offset: p.Offset + kept.PageLen(p.Offset, p.Limit), Limit: p.Limit,
	}
	return next.Append(dst, rq.owner(p.Endpoint)), true
}

// appendCursorMember appends the member next_cursor of an answer: null where no page follows.
func (rq *request) appendCursorMember(dst []byte, p *result.Plan, got cache.Answer) []byte {
	dst = append(dst, `,"next_cursor":`...)
	quoted, ok := rq.appendNextCursor(append(dst, '"'), p, got)
	if !ok {
		return append(dst, "null"...)
	}
	return append(quoted, '"')
}

// exampleCursor stands for a cursor in documents.
const exampleCursor = "TheNextCursorOfAnAnswerIsEightyLettersThatNobodyButTheServerIsMeantToUnderstand0"

// readCursor reads the cursor of a run from the body, else from the query string.
func (rq *request) readCursor(fields map[string]json.RawMessage) (text string, given bool, err error) {
	if given, err = api.Field(fields, "cursor", &text); given || err != nil {
		return text, given, err
	}
	params := rq.r.URL.Query()
	return params.Get("cursor"), params.Has("cursor"), nil
}

// planCursor understands a run that names a page of a snapshot by a cursor. Beside it stand limit, which is the size of this page and
// those after it, and what decides the form of the answer; version and variables may be repeated.
func (rq *request) planCursor(e *registry.Endpoint, fields map[string]json.RawMessage, text string) (*result.Plan, error) {
	at, err := pagecursor.Open(text, rq.owner(e))
	switch {
	case errors.Is(err, pagecursor.ErrExpired):
		return nil, errCursorExpired
	case err != nil:
		return nil, errNoCursor
	}
	key, held, ok := rq.rt.Cache.Snapshot(at.Ref, cache.Policy{Now: rq.Start})
	if !ok {
		return nil, errCursorExpired
	}
	done, ok := held.Entry.Meta.(*execution.Details)
	if !ok || key.Project() != rq.Project.ID {
		panic("BUG: a cursor of something else than a run of this project")
	}
	number, given, err := rq.runInt(fields, "version")
	switch {
	case err != nil:
		return nil, err
	case given && number != done.Version:
		return nil, api.Invalid("version", "invalid_input", "The cursor pages through rows of version %d.", done.Version)
	}
	p := &result.Plan{
		Query: &execution.Query{Endpoint: e, Key: key, Rows: compiler.Pages, Paged: true}, Freshness: execution.Freshness{Refs: true},
		View: result.View{Ref: at.Ref, Offset: at.Offset, Limit: at.Limit}, Fixed: rq.Key.Fixed,
	}
	if p.Version, err = activeVersion(e, done.Version); err != nil {
		return nil, err
	}
	if err := rq.readOptions(p, fields); err != nil {
		return nil, err
	}
	if p.Mode == cache.Recompute {
		return nil, api.Invalid("refresh", "invalid_input", "A cursor pages through rows that are there: refresh cannot be 'force'.")
	}
	if err := rq.readCursorPage(p, fields); err != nil {
		return nil, err
	}
	node, err := api.StoredQuery(e, p.Version)
	if err != nil {
		return nil, err
	}
	if err := rq.readFormat(p, node, fields); err != nil {
		return nil, err
	}
	if result.Formats[p.Format].File != "" {
		return nil, api.Invalid("format", "invalid_input", "%s has no cursors: ask for the whole file, or for csv or ndjson.", p.Format)
	}
	variables, err := api.VariablesField(fields)
	if err != nil {
		return nil, err
	}
	_, marks, err := rq.bindRun(node, variables, fields["filters_override"])
	if err != nil {
		return nil, err
	}
	if !sameMarks(done.Marks, marks, variables) {
		return nil, api.Invalid("variables", "invalid_input", "The cursor pages through rows of other variables. They can be left out.")
	}
	p.SetPage()
	return p, nil
}

// readCursorPage reads what a run with a cursor says of its page.
func (rq *request) readCursorPage(p *result.Plan, fields map[string]json.RawMessage) error {
	if _, given, err := rq.runInt(fields, "offset"); given || err != nil {
		if err == nil {
			err = api.Invalid("offset", "invalid_input", "offset cannot be used with a cursor, which says where the page begins.")
		}
		return err
	}
	limit, given, err := rq.runInt(fields, "limit")
	switch {
	case err != nil:
		return err
	case given && limit < 1:
		return badPage("limit", limit)
	case given:
		p.Limit = limit
	}
	return nil
}

// sameMarks reports whether the values of those variables that were given are the same in two marks.
func sameMarks(a, b string, given map[string]json.RawMessage) bool {
	if len(given) == 0 || a == b {
		return true
	}
	var values [2]map[string]json.RawMessage
	for i, marks := range [...]string{a, b} {
		if err := json.Unmarshal([]byte(marks), &values[i]); err != nil {
			panic("BUG: reading the marks of variables: " + err.Error())
		}
	}
	for name := range given {
		if !bytes.Equal(values[0][name], values[1][name]) {
			return false
		}
	}
	return true
}

// cursorError is the answer to a cursor whose snapshot is gone; other errors stay as they are.
func cursorError(err error) error {
	if errors.Is(err, execution.ErrSnapshotGone) {
		return errCursorExpired
	}
	return err
}

package endpoints

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/nodes"
	"github.com/caddy-analytics/caddy-analytics/module/pagecursor"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
)

var (
	// errNoCursor refuses a text that is not a cursor, or a cursor of another endpoint, project or customer. It does not say which.
	errNoCursor = api.Invalid("cursor", "invalid_input", "This is not a cursor of this endpoint.")
	// errCursorExpired has its own code, so that clients know that it helps to start again.
	errCursorExpired = api.Gone("cursor", "cursor_expired", "The rows that this cursor pages through are no longer kept. Begin again without a cursor.")
)

// CursorOwner identifies whom the cursors of a run are for: callers who may run the endpoint with the variables that the key fixes.
func CursorOwner(project int64, endpoint, fixed string) []byte {
	owner := binary.BigEndian.AppendUint64(nil, uint64(project)) //nolint:gosec // any number that differs between projects
	owner = binary.BigEndian.AppendUint64(owner, uint64(len(endpoint)))
	owner = append(owner, endpoint...)
	return append(owner, fixed...)
}

// appendNextCursor appends the cursor of the page after the plan's, and reports whether there is one. From then on, the snapshot is kept for callers who
// page through it.
func appendNextCursor(dst []byte, results *cache.Cache, p *result.Plan, got cache.Answer) ([]byte, bool) {
	kept := got.Entry.Result
	if !p.IsPage() || !kept.HasMore(p.Offset, p.Limit) {
		return dst, false
	}
	switch {
	case p.Example:
		return append(dst, exampleCursor...), true
	case p.Cut != nil: // made by the server that holds the snapshot
		return append(dst, p.Cut.Next...), p.Cut.Next != ""
	}
	next := pagecursor.Cursor{Ref: results.Refer(p.Key, got.Entry), Offset: p.Offset + kept.PageLen(p.Offset, p.Limit), Limit: p.Limit}
	return next.Append(dst, CursorOwner(p.Key.Project(), p.Endpoint.ID, p.Fixed)), true
}

// appendCursorMember appends the member next_cursor of a run's body: null if no page follows.
func appendCursorMember(dst []byte, results *cache.Cache, p *result.Plan, got cache.Answer) []byte {
	dst = append(dst, `,"next_cursor":`...)
	quoted, ok := appendNextCursor(append(dst, '"'), results, p, got)
	if !ok {
		return append(dst, "null"...)
	}
	return append(quoted, '"')
}

// exampleCursor stands for a cursor in OpenAPI documents.
const exampleCursor = "TheNextCursorOfAnAnswerIsEightyLettersThatNobodyButTheServerIsMeantToUnderstand0"

// cursor reads the cursor of a run from the body, else from the query string.
func (p *planner) cursor() (text string, given bool, err error) {
	if given, err = api.Field(p.fields, "cursor", &text); given || err != nil {
		return text, given, err
	}
	params := p.in.URL.Query()
	return params.Get("cursor"), params.Has("cursor"), nil
}

// follow fills in the plan of a run whose cursor refers to a page of a snapshot. The run can also have a limit, which is the size of this page and of those
// after it, and options for the form of the answer. It can repeat version and variables.
func (p *planner) follow(ctx context.Context, results *cache.Cache, text string) error {
	at, err := pagecursor.Open(text, CursorOwner(p.c.Project.ID, p.Endpoint.ID, p.Fixed))
	var done *execution.Details
	switch {
	case errors.Is(err, pagecursor.ErrExpired):
		if done, err = p.followElsewhere(ctx, text); err != nil {
			return err
		}
	case err != nil:
		return errNoCursor
	default:
		key, held, ok := results.Snapshot(at.Ref, cache.Policy{Now: p.c.Start})
		if !ok {
			return errCursorExpired
		}
		if done, ok = held.Entry.Meta.(*execution.Details); !ok || key.Project() != p.c.Project.ID {
			panic("BUG: a cursor of something else than a run of this project")
		}
		p.Key, p.Ref, p.Offset, p.Limit = key, at.Ref, at.Offset, at.Limit
	}
	number, given, err := p.integer("version")
	switch {
	case err != nil:
		return err
	case given && number != done.Version:
		return api.Invalid("version", "invalid_input", "The cursor pages through rows of version %d.", done.Version)
	}
	p.Rows, p.Paged, p.Refs = compiler.Pages, true, true
	if p.Version, err = p.activeVersion(done.Version); err != nil {
		return err
	}
	if err := p.options(); err != nil {
		return err
	}
	if p.Mode == cache.Recompute {
		word := "force"
		if p.direct {
			word = "direct"
		}
		return api.Invalid("refresh", "invalid_input", "A cursor pages through rows that are there: refresh cannot be '%s'.", word)
	}
	if err := p.cursorPage(); err != nil {
		return err
	}
	node, err := api.StoredQuery(p.Endpoint, p.Version)
	if err != nil {
		return err
	}
	if err := p.format(node); err != nil {
		return err
	}
	if result.Formats[p.Format].File != "" {
		return api.Invalid("format", "invalid_input", "%s has no cursors: ask for the whole file, or for csv or ndjson.", p.Format)
	}
	bound, err := p.bind(node)
	if err != nil {
		return err
	}
	if !sameMarks(done.Marks, bound.marks, bound.given) {
		return api.Invalid("variables", "invalid_input", "The cursor pages through rows of other variables. They can be left out.")
	}
	return nil
}

// followElsewhere gets a page from the server that made its cursor.
func (p *planner) followElsewhere(ctx context.Context, text string) (*execution.Details, error) {
	process, ok := pagecursor.ProcessOf(text)
	if !ok || p.exec.Peers == nil {
		return nil, errCursorExpired
	}
	node, err := p.exec.Peers.Named(ctx, process)
	switch {
	case errors.Is(err, nodes.ErrGone):
		return nil, errCursorExpired
	case err != nil:
		return nil, cursorAway(ctx, err)
	}
	if err := p.cursorPage(); err != nil {
		return nil, err
	}
	run := map[string]any{"cursor": text}
	if p.Limit > 0 {
		run["limit"] = p.Limit
	}
	cut, err := p.exec.AskCut(ctx, &p.c.Caller, node, execution.Recipe{Endpoint: p.Endpoint.Name, Run: jsontext.Append(nil, run)})
	if errors.Is(err, peers.ErrAbsent) {
		ended, unread := p.exec.Peers.Ended(ctx, node)
		if ended {
			return nil, errCursorExpired
		}
		err = errors.Join(err, unread)
	}
	switch {
	case errors.Is(err, execution.ErrSnapshotGone):
		return nil, errCursorExpired
	case err != nil:
		return nil, cursorAway(ctx, err)
	}
	if of, _ := pagecursor.ProcessOf(cut.Next); cut.Next != "" && of != node.Name {
		return nil, cursorAway(ctx, errNextCursor)
	}
	done, _ := cut.Answer.Entry.Meta.(*execution.Details)
	p.Cut, p.Key, p.Offset, p.Limit = cut, cut.Key, cut.Offset, cut.Limit
	p.Ref = cache.Ref{Entry: cut.Answer.Entry.ID()}
	return done, nil
}

// errNextCursor refuses a page whose next cursor was not made by the server asked.
var errNextCursor = errors.New("another server returned a next cursor that is not its own")

// cursorAway returns the error for a cursor whose server may hold the rows, but does not return them.
func cursorAway(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return api.Unavailable("error", "The server that holds this cursor's rows is not responding. Please try again later.", time.Second, err)
}

// cursorPage reads the limit of a run with a cursor, and refuses an offset.
func (p *planner) cursorPage() error {
	if _, given, err := p.integer("offset"); given || err != nil {
		if err == nil {
			err = api.Invalid("offset", "invalid_input", "offset cannot be used with a cursor, which says where the page begins.")
		}
		return err
	}
	limit, given, err := p.integer("limit")
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

// sameMarks reports whether the variables that were given have the same values in two marks.
func sameMarks(a, b string, given map[string]json.RawMessage) bool {
	if len(given) == 0 || a == b {
		return true
	}
	var values [2]map[string]json.RawMessage
	for i, marks := range [...]string{a, b} {
		if marks == "" { // no variables
			continue
		}
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

// cursorError returns the error for a cursor whose snapshot is gone, and returns other errors unchanged.
func cursorError(err error) error {
	if errors.Is(err, execution.ErrSnapshotGone) {
		return errCursorExpired
	}
	return err
}

// Package mcp contains the tools that PostHog's MCP server runs on this server: POST mcp_tools/{tool}/ with {"args": {…}}. The response is text for a
// language model, which includes mistakes in a query.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/texttable"
)

// Tools handles the routes of the tools.
type Tools struct{ Executor *execution.Executor }

// Routes returns the routes of the supported tools. The others belong to products that are not supported.
func (t *Tools) Routes() []api.Route {
	return []api.Route{
		{Method: http.MethodPost, Pattern: "mcp_tools/execute_sql", Scope: result.QueryScope, Handler: t.executeSQL},
		{Method: http.MethodPost, Pattern: "mcp_tools/read_taxonomy", Scope: result.QueryScope, Handler: t.readTaxonomy},
	}
}

// readArgs reads the arguments of a tool.
func readArgs(in *api.Input, into any) error {
	fields, err := in.ReadObject()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(fields["args"], into); err != nil {
		return api.Invalid("args", "invalid_input", "The arguments of the tool cannot be read.")
	}
	return nil
}

// answer answers with text, or with the mistake in a query instead.
func answer(text string, quotas execution.Quotas, err error) (*api.Response, error) {
	said := struct {
		Success bool   `json:"success"`
		Content string `json:"content"`
	}{err == nil, text}
	if err != nil {
		failed := api.ErrorOf(err)
		if failed.Status != http.StatusBadRequest {
			return &api.Response{Quotas: quotas}, err
		}
		said.Content = failed.Detail
	}
	return api.JSON(http.StatusOK, said).With(quotas), nil
}

// cellLength is the length to which a tool shortens a value, in characters, unless the caller turns that off.
const cellLength = 500

// cellsOf returns the length to which values are shortened; 0 for not at all.
func cellsOf(truncate *bool) int {
	if truncate != nil && !*truncate {
		return 0
	}
	return cellLength
}

// textSize is about how many times the memory of a result the text takes, with the cells and the JSON that it is made of.
const textSize = 4

// memoryOf returns about how many bytes it takes to write a result as text, with cells of at most that many characters; 0 leaves them whole.
func memoryOf(e *cache.Entry, cells int) int64 {
	size := e.Size()
	if cells > 0 {
		longest := 0 // is decoded before its cells are cut
		for row := range e.Result.Rows() {
			longest = max(longest, len(row))
		}
		size = min(size, int64(longest)+int64(e.Result.Len())*int64(len(e.Result.Columns()))*int64(cells*utf8.UTFMax))
	}
	return textSize * size
}

// executeSQL runs HogQL and answers with a table.
func (t *Tools) executeSQL(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	var args struct {
		Query      string `json:"query"`
		Truncate   *bool  `json:"truncate"`
		Connection string `json:"connectionId"`
	}
	switch err := readArgs(in, &args); {
	case err != nil:
		return nil, err
	case args.Query == "":
		return nil, api.Invalid("args.query", "required", "This field is required.")
	case args.Connection != "":
		return answer("", nil, api.Invalid("args.connectionId", "invalid_input", "There are no other connections than the project's own data."))
	}
	got, err := result.Ask(ctx, t.Executor, c, &query.HogQL{Query: args.Query}, 0)
	if err != nil {
		return answer("", got.Quotas, err)
	}
	entry := got.Answer.Entry
	cells := cellsOf(args.Truncate)
	leave, err := result.Reserve(ctx, in, c.Project.ID, min(memoryOf(entry, cells), in.Memory.Most()))
	if err != nil {
		return &api.Response{Quotas: got.Quotas}, err
	}
	defer leave()
	done, _ := entry.Meta.(*execution.Details)
	text, err := texttable.Rows(done.Columns, entry.Result.Rows(), cells)
	if err != nil {
		return &api.Response{Quotas: got.Quotas}, fmt.Errorf("writing rows as text: %w", err)
	}
	if entry.Result.More() {
		text += fmt.Sprintf("\n\nThere are more rows than these %d: give the query a LIMIT and an OFFSET.", entry.Result.Len())
	}
	return answer(text, got.Quotas, nil)
}

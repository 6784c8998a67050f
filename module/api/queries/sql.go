package queries

import (
	"context"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/internal/sqllayout"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// sqlRecord is the SQL of a query, formatted in lines.
type sqlRecord struct {
	HogQL      *string     `json:"hogql"` // nil if the query can't be written in HogQL
	SQL        string      `json:"sql"`   // for ClickHouse, with parameters as {name:Type}
	Parameters []parameter `json:"parameters"`
}

// parameter is a value sent to ClickHouse along with the SQL.
type parameter struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

// sql answers POST query/sql/: it compiles a query request without running it. The text includes the project's condition, as sent to ClickHouse.
func (q *Queries) sql(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	body, err := api.ReadBody(in.Request)
	if err != nil {
		return nil, err
	}
	defer api.ReturnBody(body)
	p, err := q.Plan(c, body.Bytes(), "")
	if err != nil {
		return nil, err
	}
	if describes(p.Node) {
		return nil, api.Invalid("query", "invalid_input", "A query of the kind %s runs no SQL.", p.Node.Kind())
	}
	compiled, err := q.Executor.Compile(ctx, c.Snapshot, q.Executor.CompilesOf(&c.Caller), p.Query, c.Start)
	if err != nil {
		return nil, err
	}
	record := sqlRecord{Parameters: make([]parameter, len(compiled.Params))}
	record.SQL, _ = sqllayout.Lay(compiled.SQL)
	if compiled.HogQL != "" {
		laid, _ := sqllayout.Lay(compiled.HogQL)
		record.HogQL = &laid
	}
	for i, p := range compiled.Params {
		record.Parameters[i] = parameter(p)
	}
	return api.JSON(http.StatusOK, record), nil
}

package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestErrorBodies pins the status, body and Retry-After of every kind of failure (contract api.md, section 7), wrapped as in the code.
func TestErrorBodies(t *testing.T) {
	engine := func(kind clickhouse.ErrorKind) error {
		return &clickhouse.Error{Kind: kind, Code: 1, Name: "no_common_type", Message: "There is no supertype"}
	}
	late := NewRunError(404, "invalid_request", "not_found", "Version 9 not found for endpoint 'x'")
	late.Run.CurrentVersion = 3
	tests := []struct {
		name   string
		err    error
		status int
		retry  string
		body   string
	}{
		{"the engine's user error", engine(clickhouse.UserError), 400, "", `{"type":"validation_error","code":"no_common_type","detail":"There is no supertype","attr":null}`},
		{"timeout", engine(clickhouse.Timeout), 504, "", `{"type":"server_error","code":"error","detail":"Query has hit the max execution time before completing. Try reducing its scope by changing the time range.","attr":null}`},
		{"memory", engine(clickhouse.Memory), 513, "", `{"type":"server_error","code":"clickhouse_memory_limit_exceeded","detail":"This query ran out of memory before it could finish, try reducing its scope by changing the time range.","attr":null}`},
		{"too slow", engine(clickhouse.TooSlow), 512, "", `{"type":"server_error","code":"error","detail":"Estimated query execution time is too long. Try reducing its scope by changing the time range.","attr":null}`},
		{"too large", engine(clickhouse.TooLarge), 400, "", `{"type":"validation_error","code":"query_too_large","detail":"The result is too large: it may take 64 MiB and have 1000000 rows, and one row may take 32 MiB. Ask for fewer rows or columns.","attr":null}`},
		{"busy", engine(clickhouse.Busy), 503, "1", `{"type":"server_error","code":"error","detail":"Queries are a little too busy right now. We're working to free up resources. Please try again later.","attr":null}`},
		{"unavailable", engine(clickhouse.Unavailable), 503, "1", `{"type":"server_error","code":"error","detail":"The analytics database is not available right now. Please try again later.","attr":null}`},
		{"unrunnable", engine(clickhouse.Unrunnable), 400, "", `{"type":"validation_error","code":"no_common_type","detail":"ClickHouse cannot run this query. Simplify it, or write it in another way.","attr":null}`},
		{"unrunnable without a name", &clickhouse.Error{Kind: clickhouse.Unrunnable, Code: 4444}, 400, "", `{"type":"validation_error","code":"query_failed","detail":"ClickHouse cannot run this query. Simplify it, or write it in another way.","attr":null}`},
		{"internal", engine(clickhouse.Internal), 500, "", `{"type":"server_error","code":"error","detail":"ClickHouse error while executing query.","attr":null}`},
		{"a bug", errors.New("BUG: with a secret in it"), 500, "", `{"type":"server_error","code":"error","detail":"A server error occurred.","attr":null}`},
		{"a cancelled context", context.Canceled, 500, "", `{"type":"server_error","code":"error","detail":"A server error occurred.","attr":null}`},
		{"a JSON mistake", diag.Field(diag.ParseError, "query.x", "JSON parse error - x"), 400, "", `{"type":"invalid_request","code":"parse_error","detail":"JSON parse error - x","attr":null}`},
		{"a field", diag.Field(diag.InvalidInput, "query.x", "Unsupported <kind>"), 400, "", `{"type":"validation_error","code":"invalid_input","detail":"Unsupported <kind>","attr":"query.x"}`},
		{"a registry field", &registry.FieldError{Field: "name", Code: "unique", Message: "taken"}, 400, "", `{"type":"validation_error","code":"unique","detail":"taken","attr":"name"}`},
		{"the first of several", errors.Join(Invalid("a", "required", "first"), Invalid("b", "required", "second")), 400, "", `{"type":"validation_error","code":"required","detail":"first","attr":"a"}`},
		{"nothing there", registry.ErrNotFound, 404, "", `{"type":"invalid_request","code":"not_found","detail":"Not found.","attr":null}`},
		{"the registry's disk full", fmt.Errorf("%w: 13", registry.ErrDiskFull), 503, "1", `{"type":"server_error","code":"error","detail":"The registry is not available right now. Please try again later.","attr":null}`},
		{"the registry away", fmt.Errorf("%w: dial tcp 10.0.0.7: refused", registry.ErrUnavailable), 503, "1", `{"type":"server_error","code":"error","detail":"The registry is not available right now. Please try again later.","attr":null}`},
		{"a write in doubt", fmt.Errorf("%w: %w", registry.ErrInDoubt, errors.New("EOF")), 503, "", `{"type":"server_error","code":"error","detail":"The connection to the registry was lost during this write, which may or may not have been applied. Check before you send it again.","attr":null}`},
		{"throttled", &execution.LimitError{Owner: "k", Detail: "Request was throttled. Expected available in 2 seconds.", Wait: 1500 * time.Millisecond}, 429, "2", `{"type":"throttled_error","code":"throttled","detail":"Request was throttled. Expected available in 2 seconds.","attr":null}`},
		{"a cancelled query", execution.ErrCancelled, 400, "", `{"type":"validation_error","code":"query_was_cancelled","detail":"The query was cancelled.","attr":null}`},
		{"a server that stops", execution.ErrStopped, 503, "", `{"type":"server_error","code":"error","detail":"The server is stopping. Please try again later.","attr":null}`},
		{"a cache that is closed", fmt.Errorf("running the query: %w", cache.ErrClosed), 503, "", `{"type":"server_error","code":"error","detail":"The server is stopping. Please try again later.","attr":null}`},
		{"a run error", late, 404, "", `{"error":"Version 9 not found for endpoint 'x'","current_version":3,"type":"invalid_request","code":"not_found","detail":"Version 9 not found for endpoint 'x'","attr":null}`},
		{"a plain run error", NewRunError(400, "validation_error", "invalid_input", "Invalid limit parameter: a"), 400, "", `{"error":"Invalid limit parameter: a","type":"validation_error","code":"invalid_input","detail":"Invalid limit parameter: a","attr":null}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			res := ErrorOf(fmt.Errorf("running: %w", tt.err)).response()
			Write(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody), time.Now(), res)
			if w.Code != tt.status || w.Header().Get("Retry-After") != tt.retry || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("answers %d with %v", w.Code, w.Header())
			}
			if diff := cmp.Diff(tt.body, w.Body.String()); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRunFailures pins the errors of endpoint runs that have another status on the query route (contract api.md, section 5.7).
func TestRunFailures(t *testing.T) {
	const typ, validationTyp = "server_error", "validation_error"
	for kind, want := range map[clickhouse.ErrorKind]Error{
		clickhouse.Timeout:     {Status: 400, Type: typ, Code: "query_timeout"},
		clickhouse.Memory:      {Status: 400, Type: typ, Code: "query_memory_limit"},
		clickhouse.TooSlow:     {Status: 400, Type: typ, Code: "query_estimated_too_slow"},
		clickhouse.TooLarge:    {Status: 400, Type: typ, Code: "query_too_large"},
		clickhouse.Busy:        {Status: 503, Type: typ, Code: "query_capacity", RetryAfter: time.Second},
		clickhouse.Unavailable: {Status: 503, Type: typ, Code: "error", RetryAfter: time.Second},
		clickhouse.Internal:    {Status: 500, Type: typ, Code: "error"},
		clickhouse.UserError:   {Status: 400, Type: validationTyp, Code: "no_common_type"},
		clickhouse.Unrunnable:  {Status: 400, Type: validationTyp, Code: "no_common_type"},
	} {
		got := ErrorOf(RunFailure(fmt.Errorf("running: %w", &clickhouse.Error{Kind: kind, Name: "no_common_type"})))
		shown := Error{Status: got.Status, Type: got.Type, Code: got.Code, RetryAfter: got.RetryAfter}
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Errorf("kind %d (-want +got):\n%s", kind, diff)
		}
	}
	if mine := errors.New("mine"); !errors.Is(RunFailure(mine), mine) {
		t.Error("another error does not stay what it is")
	}
}

// TestErrorLog checks what is logged: the server's own failures, and queries that ClickHouse cannot run.
func TestErrorLog(t *testing.T) {
	for _, tt := range []struct {
		kind clickhouse.ErrorKind
		want []string
	}{
		{clickhouse.UserError, nil},
		{clickhouse.TooLarge, nil},
		{clickhouse.Unrunnable, []string{"warn: ClickHouse cannot run a query"}},
		{clickhouse.Internal, []string{"error: request failed"}},
	} {
		core, logs := observer.New(zap.DebugLevel)
		answer := ErrorOf(&clickhouse.Error{Kind: tt.kind, Code: 49, Name: "logical_error"})
		answer.Log(zap.New(core), httptest.NewRequest(http.MethodPost, "/api/projects/1/query/", nil), "id")
		var got []string
		for _, entry := range logs.All() {
			got = append(got, entry.Level.String()+": "+entry.Message)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.kind, diff)
		}
	}
}

// TestMistakePlace checks that a mistake in a text has its position.
func TestMistakePlace(t *testing.T) {
	const text = "select 1,\n  evnt from events"
	mistake := &diag.Error{Code: diag.QueryError, Detail: "Unable to resolve field: evnt", Span: diag.Span{Start: 12, End: 16}, Hint: "event"}
	answer := ErrorOf(&execution.QueryError{Text: text, Err: fmt.Errorf("compiling: %w", mistake)})
	extra, ok := answer.Extra.(MistakeExtra)
	if !ok || answer.Status != 400 {
		t.Fatalf("answers %d with the extra %v", answer.Status, answer.Extra)
	}
	if diff := cmp.Diff(&Position{Line: 2, Column: 3, Start: 12, End: 16, Hint: "event"}, extra.Position); diff != "" {
		t.Errorf("place (-want +got):\n%s", diff)
	}
}

package materialize_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/internal/golden"
	"github.com/caddy-analytics/caddy-analytics/internal/golden/layout"
)

// options is the section options of a golden file: the settings of the version and the run.
type options struct {
	Buckets  map[string]string `json:"bucket_overrides"`
	Optional []string          `json:"optional_breakdown_properties"`
	// Values are the variable values of the run that is compiled.
	Values map[string]any `json:"variables"`
}

func env() compiler.Env {
	return compiler.Env{
		Now: time.Date(2024, 5, 31, 13, 45, 10, 0, time.UTC),
		Variables: map[string]any{
			"event_name": nil, "since": nil, "until": nil, "least": nil, "pattern": nil, "other": nil,
		},
		Database: &schema.Database{
			Project: 7, Location: time.UTC,
			Properties: schema.PropertyTypes{
				{Scope: schema.EventProperty, Name: "price"}: schema.NumericProperty,
				{Scope: schema.EventProperty, Name: "due"}:   schema.DateTimeProperty,
			},
		},
	}
}

// hogqlNode returns a query with the variables that its text uses.
func hogqlNode(text string) *query.HogQL {
	q := &query.HogQL{Query: text, Variables: map[string]query.Variable{}}
	for name := range env().Variables {
		if strings.Contains(text, "variables."+name) {
			q.Variables[name] = query.Variable{VariableID: name, CodeName: name}
		}
	}
	return q
}

func TestPlans(t *testing.T) {
	t.Parallel()
	outputs := []string{"reason", "transformed", "execution", "display", "required", "ranges", "aggregates", "fill", "keys", "read", "args"}
	golden.Run(t, "testdata/*/*.txtar", []string{"query", "request", "options"}, outputs, func(t *testing.T, in map[string]string) map[string]string {
		t.Helper()
		var o options
		if in["options"] != "" {
			if err := json.Unmarshal([]byte(in["options"]), &o); err != nil {
				t.Fatal(err)
			}
		}
		var n query.Node = hogqlNode(strings.TrimSpace(in["query"]))
		if in["request"] != "" {
			var err error
			if n, err = compiler.Parse([]byte(in["request"])); err != nil {
				t.Fatal(err)
			}
		}
		p, err := materialize.New(n, env(), materialize.Options{Endpoint: "best-sellers", Version: 3, Buckets: o.Buckets, Optional: o.Optional})
		if refusal, ok := errors.AsType[*materialize.Refusal](err); ok {
			return map[string]string{"reason": layout.Text(t, refusal.Reason)}
		}
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{
			"execution": layout.SQL(t, p.Execution), "display": layout.SQL(t, p.Display), "required": strings.Join(p.Required, "\n"),
			"fill": layout.SQL(t, p.Fill.SQL), "keys": strings.Join(p.Keys, "\n"), "ranges": lines(t, p.RangePairs), "aggregates": lines(t, p.Aggregates),
		}
		if in["query"] != "" {
			out["transformed"] = layout.SQL(t, p.Transformed)
		}
		read, err := p.Read(materialize.Run{Table: "endpoint_7_a_v3_1", Filled: env().Now, Values: o.Values}, env())
		if err != nil {
			t.Fatal(err)
		}
		out["read"] = layout.SQL(t, read.SQL)
		for _, param := range read.Params {
			out["args"] += fmt.Sprintf("%s %s %q\n", param.Name, param.Type, param.Value)
		}
		return out
	})
}

func lines[T any](t *testing.T, list []T) string {
	t.Helper()
	var out strings.Builder
	for _, item := range list {
		text, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
		out.WriteByte('\n')
	}
	return out.String()
}

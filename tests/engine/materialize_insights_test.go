package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// shaped is the answer of an insight.
func shaped(t *testing.T, c *compiler.Compiled, tables ...string) string {
	t.Helper()
	got, err := runCompiled(t, c, tables...)
	if err != nil {
		t.Fatalf("%v (%v)\n%s", err, errors.Unwrap(err), c.SQL)
	}
	answer, err := c.Shape(rowCollector(got.Rows).all)
	if err != nil {
		t.Fatal(err)
	}
	more := "none"
	if answer.HasMore != nil {
		more = fmt.Sprint(*answer.HasMore)
	}
	return fmt.Sprintf("%s\nmore: %s, range: %v, previous: %v", answer.Results, more, answer.Range, answer.Previous)
}

// keptInsight materializes an insight; nil when it is refused.
func keptInsight(t *testing.T, n query.Node, env compiler.Env) (*materialize.Plan, string) {
	t.Helper()
	plan, err := materialize.New(n, env, materialize.Options{Endpoint: "kept", Version: 1})
	if _, refused := errors.AsType[*materialize.Refusal](err); refused {
		return nil, err.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	table, err := materialized(t, plan)
	if err != nil {
		t.Fatalf("%v (%v)\n%s", err, errors.Unwrap(err), plan.Fill.SQL)
	}
	return plan, table
}

func parsedInsight(t *testing.T, node map[string]any) query.Insight {
	t.Helper()
	raw, err := json.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := compiler.Parse(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return parsed.(query.Insight)
}

// TestMaterializedInsights draws random insights of all kinds from events and from their tables, a day later: the answers are the same.
func TestMaterializedInsights(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 5)) // the same every time
	events := randomEvents(random)
	importEvents(t, materializedProject, events)
	count := rounds(t, 16)
	kinds := map[string]func() (map[string]any, string){
		"TrendsQuery":    func() (map[string]any, string) { q := randomTrend(random); return q.node(), q.zone },
		"FunnelsQuery":   func() (map[string]any, string) { q := randomFunnel(random); return q.node(), "UTC" },
		"PathsQuery":     func() (map[string]any, string) { q := randomPath(random); return q.node(), q.zone },
		"RetentionQuery": func() (map[string]any, string) { q := randomRetention(random, "day", events); return q.node(), q.zone },
		"StickinessQuery": func() (map[string]any, string) {
			return map[string]any{"kind": "StickinessQuery", "series": keptSeries(random), "dateRange": keptRange(random)}, "UTC"
		},
		"LifecycleQuery": func() (map[string]any, string) {
			return map[string]any{"kind": "LifecycleQuery", "series": keptSeries(random), "dateRange": keptRange(random)}, "Asia/Kolkata"
		},
	}
	for kind, next := range kinds {
		t.Run(kind, func(t *testing.T) {
			compared := 0
			for range count {
				node, zone := next()
				n, env := parsedInsight(t, node), keptEnv(t, zone)
				env.PlainValues = true
				plan, table := keptInsight(t, n, env)
				if plan == nil || len(plan.Required) > 0 {
					continue
				}
				direct, err := compiler.Compile(n, env)
				if err != nil {
					t.Fatal(err)
				}
				filled := env.Now
				env.Now = env.Now.Add(24 * time.Hour)
				read, err := plan.Read(materialize.Run{Table: table, Filled: filled}, env)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(shaped(t, direct), shaped(t, read, table)); diff != "" {
					t.Fatalf("%s\nanswer (-insight +table):\n%s", n.Canonical(), diff)
				}
				compared++
			}
			if compared < count/4 {
				t.Errorf("only %d answers were compared", compared)
			}
		})
	}
}

func keptSeries(r *rand.Rand) []any {
	return []any{map[string]any{"kind": "EventsNode", "event": []any{"a", "b", nil}[r.IntN(3)]}}
}

func keptRange(r *rand.Rand) map[string]any {
	return map[string]any{"date_from": fmt.Sprintf("2024-03-%02d", 1+r.IntN(5)), "date_to": fmt.Sprintf("2024-03-%02d", 6+r.IntN(12))}
}

// TestMaterializedBreakdowns draws random trends for values of their breakdowns, from events and from their tables: the answers are the same.
func TestMaterializedBreakdowns(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 6)) // the same every time
	importEvents(t, materializedProject, randomEvents(random))
	count := rounds(t, 50)
	compared, refused := 0, map[string]int{}
	for i := range count {
		q := randomTrend(random)
		q.breakdown = [][]string{{"browser"}, {"plan"}, {"browser", "plan"}, {"plan", "browser"}, {"parity"}}[random.IntN(5)]
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			n, env := parsedInsight(t, q.node()), keptEnv(t, q.zone)
			env.PlainValues = true
			plan, table := keptInsight(t, n, env)
			if plan == nil {
				refused[table]++
				return
			}
			for range 4 {
				values := map[string]any{}
				for _, name := range plan.Required {
					values[name] = map[string][]any{
						"browser": {"Chrome", "Firefox", "Safari", "Opera", "none", "chrome"}, "plan": {"pro", "free", "Preview", "none"},
					}[name][random.IntN(4)]
				}
				bound, err := query.Bind(n, values)
				if err != nil {
					t.Fatal(err)
				}
				direct, err := compiler.Compile(bound, env)
				if err != nil {
					t.Fatal(err)
				}
				read, err := plan.Read(materialize.Run{Table: table, Filled: env.Now, Values: values}, env)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(shaped(t, direct), shaped(t, read, table)); diff != "" {
					t.Fatalf("%s\n%v\nanswer (-insight +table):\n%s", n.Canonical(), values, diff)
				}
				compared++
			}
		})
	}
	t.Logf("%d answers are the same; refused: %v", compared, refused)
	if compared < count {
		t.Errorf("only %d answers were compared", compared)
	}
}

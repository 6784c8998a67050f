package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// The project whose people and groups have several versions, and one that has the latest of each alone.
const versionsProject, latestProject = 751, 752

// TestVersions: of a person or a group the latest version counts, with what it has not, whatever an earlier one has.
func TestVersions(t *testing.T) {
	for _, table := range []string{"person", "groups"} {
		execute(t, dsn, "SYSTEM STOP MERGES "+table)
		defer execute(t, dsn, "SYSTEM START MERGES "+table)
	}
	fillVersions(t)
	ask := func(c *compiler.Compiled, project int64) []string {
		q := clickhouse.Query{SQL: c.SQL, Project: project}
		for _, p := range c.Params {
			q.Params = append(q.Params, clickhouse.Param(p))
		}
		var rows rowCollector
		if _, err := client.Query(t.Context(), q, &rows); err != nil {
			t.Fatalf("%v\n%s", err, c.SQL)
		}
		return rows
	}
	env := func(project int64) compiler.Env {
		return compiler.Env{Now: day, Database: &schema.Database{
			Project: project, Location: time.UTC, Layout: schema.NativeLayout(),
			Properties: schema.PropertyTypes{
				{Scope: schema.PersonProperty, Name: "seats"}: schema.NumericProperty, {Scope: schema.PersonProperty, Name: "paid"}: schema.BooleanProperty,
				{Scope: schema.PersonProperty, Name: "since"}: schema.DateTimeProperty, {Scope: schema.GroupProperty, Name: "seats"}: schema.NumericProperty,
			},
		}}
	}
	compare := func(name string, compile func(compiler.Env) (*compiler.Compiled, error)) []string {
		var answers [2][]string
		for i, project := range []int64{versionsProject, latestProject} {
			c, err := compile(env(project))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			answers[i] = ask(c, project)
			slices.Sort(answers[i])
		}
		if diff := cmp.Diff(answers[1], answers[0]); diff != "" {
			t.Errorf("%s (-of the latest versions +of all):\n%s", name, diff)
		}
		return answers[1]
	}
	for query, want := range map[string]int{
		"select id, properties.plan, properties.seats, properties.paid, properties.since, created_at, properties from persons":       8,
		"select id, properties.plan.a, properties.plan[1], properties.seats + 1, properties.$virt_initial_channel_type from persons": 8,
		"select id from persons where properties.plan is null":                                                                       2,
		"select id from persons where properties.plan = 'pro'":                                                                       2,
		"select id from persons where properties.seats is null or not properties.paid":                                               6,
		"select p.id, q.properties.plan, q.properties.seats from persons p left join persons q on q.id = p.id":                       8,
		"select key, properties.plan, properties.seats from groups":                                                                  3,
		"select key from groups where properties.plan is null":                                                                       1,
	} {
		got := compare(query, func(e compiler.Env) (*compiler.Compiled, error) {
			node, err := compiler.Parse(fmt.Appendf(nil, `{"kind":"HogQLQuery","query":%q}`, query))
			if err != nil {
				return nil, err
			}
			return compiler.Compile(node, e)
		})
		if len(got) != want {
			t.Errorf("%s gives %d rows, want %d:\n%s", query, len(got), want, strings.Join(got, "\n"))
		}
	}
	for leaf, want := range map[string]int{
		`"key": "plan", "operator": "exact", "value": "pro"`:                           2,
		`"key": "plan", "operator": "exact", "value": ["free", "5"]`:                   2,
		`"key": "plan", "operator": "is_not", "value": "pro"`:                          6,
		`"key": "plan", "operator": "icontains", "value": "r"`:                         4,
		`"key": "plan", "operator": "not_regex", "value": "^f"`:                        7,
		`"key": "plan", "operator": "is_set"`:                                          6,
		`"key": "plan", "operator": "is_not_set"`:                                      2,
		`"key": "seats", "operator": "exact", "value": "5"`:                            1,
		`"key": "seats", "operator": "gt", "value": 4`:                                 2,
		`"key": "seats", "operator": "not_between", "value": [1, 4]`:                   2,
		`"key": "paid", "operator": "exact", "value": "false"`:                         1,
		`"key": "since", "operator": "is_date_before", "value": "2024-02-01"`:          1,
		`"key": "$virt_initial_channel_type", "operator": "exact", "value": "Direct"`:  1,
		`"key": "$virt_initial_channel_type", "operator": "is_not", "value": "Direct"`: 7,
		`"key": "plan", "operator": "semver_gt", "value": "1.0.0"`:                     1,
	} {
		got := compare(leaf, func(e compiler.Env) (*compiler.Compiled, error) {
			d, err := cohort.Read([]byte(`{"properties": {"type": "AND", "values": [{"type": "person", `+leaf+`}]}}`), nil)
			if err != nil {
				return nil, err
			}
			return compiler.CompileCohort(d, e)
		})
		if len(got) != want {
			t.Errorf("%s has %d members, want %d:\n%s", leaf, len(got), want, strings.Join(got, "\n"))
		}
	}
}

// fillVersions writes the people and the groups of both projects, an INSERT for each version: ClickHouse would make one row of them.
func fillVersions(t *testing.T) {
	t.Helper()
	const there, deleted = 0, 1
	type version struct {
		properties string
		created    string
		deleted    int
	}
	first, ahead := "2024-01-01", day.Add(48*time.Hour).Format(time.DateOnly)
	people := [][]version{
		{{`{"plan":"free"}`, first, there}, {`{"plan":"pro","seats":5}`, first, there}},
		{{`{"plan":"pro","seats":7,"paid":true}`, first, there}, {`{}`, first, there}},
		{{`{"plan":"pro"}`, first, there}, {`{"plan":null,"paid":false,"since":"2024-01-05T10:00:00Z"}`, first, there}},
		{{`{"plan":"pro","seats":"4"}`, first, there}, {`{"plan":5,"seats":"6.5"}`, first, there}},
		{{`{"plan":{"a":"pro"}}`, first, there}, {`{"plan":["pro","free"],"seats":true}`, first, there}},
		{{`{"plan":"free","$initial_utm_source":"x"}`, first, there}, {`{"plan":"free","$initial_referring_domain":"$direct"}`, first, there}},
		{{`{"plan":"pro"}`, first, there}, {`{"plan":"2.1.0"}`, first, there}},
		{{`{}`, first, deleted}, {`{"plan":"pro"}`, first, there}}, // who came back
		{{`{"plan":"pro"}`, first, there}, {`{"plan":"pro"}`, first, deleted}},
		{{`{"plan":"pro"}`, first, there}, {`{"plan":"pro"}`, ahead, there}},
	}
	for i, versions := range people {
		for n := range versions {
			v := versions[(n+i)%len(versions)] // the latest one is not always written last
			for _, project := range []int64{versionsProject, latestProject} {
				if number := (n + i) % len(versions); project == versionsProject || number == len(versions)-1 {
					execute(t, dsn, fmt.Sprintf("INSERT INTO person (id, created_at, team_id, properties, is_deleted, version) "+
						"SETTINGS input_format_try_infer_dates = 0, input_format_try_infer_datetimes = 0 VALUES "+
						"('00000000-0000-4000-8000-%012d', '%s', %d, '%s', %d, %d)", i, v.created, project, v.properties, v.deleted, number+1))
				}
			}
		}
	}
	for i, versions := range [][2]string{
		{`{"plan":"pro","seats":3}`, `{"plan":"free"}`}, {`{"plan":"pro"}`, `{"seats":"4"}`}, {`{}`, `{"plan":7}`},
	} {
		for n, properties := range versions {
			for _, project := range []int64{versionsProject, latestProject} {
				if project == versionsProject || n == 1 {
					execute(t, dsn, fmt.Sprintf("INSERT INTO groups (group_type_index, group_key, created_at, team_id, group_properties, _timestamp) VALUES "+
						"(0, 'g%d', '2024-01-01', %d, '%s', '2024-01-0%d')", i, project, properties, n+1))
				}
			}
		}
	}
}

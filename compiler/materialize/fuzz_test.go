package materialize_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
)

// FuzzPlan checks that every query is planned or refused, that reads are compiled or refused as mistakes, and that both only read tables with the
// project's guard: the printer refuses others as bugs.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{
		"select event, count() as n from events where timestamp >= {variables.since} and event = {variables.event_name} group by event order by n",
		"select count() / uniq(distinct_id), 'x' from events where event = {variables.other}",
		"select minIf(timestamp, event = 'a') as m, m + 1 from events where toDate(timestamp) < {variables.until} having m > 1",
		"select *, cnt_v1 from (select event as cnt_v1, 1 as since from events) where cnt_v1 like {variables.pattern} limit 3 offset 1",
		"with 1 as one select distinct event as since, one from events e where e.event = {variables.since} order by 1",
		"select toStartOfDay(timestamp) as timestamp, sum(properties.price) from events where timestamp > {variables.since} group by 1, timestamp",
		"select event as e from events where e = {variables.event_name} and -{variables.least} < properties.price",
		"select (sum(x as y), max(y)) from (select properties.price as x from events where {filters}) where x >= {variables.least}",
		"select a.event, count() from events a join persons p on a.person_id = p.id where p.created_at > {variables.since} group by 1 limit 1 by 1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2048 {
			return
		}
		p, err := materialize.New(hogqlNode(text), env(), materialize.Options{Endpoint: "cnt", Version: 1, Buckets: map[string]string{"timestamp": "hour"}})
		if _, refused := errors.AsType[*materialize.Refusal](err); refused {
			return
		}
		if err != nil {
			t.Fatalf("%q is refused with a bug: %v", text, err)
		}
		if !strings.HasPrefix(p.Fill.SQL, "SELECT") && !strings.HasPrefix(p.Fill.SQL, "WITH") {
			t.Errorf("%q is filled with %s", text, p.Fill.SQL)
		}
		values := map[string]any{}
		for _, name := range p.Required {
			values[name] = "2024-01-01"
		}
		read, err := p.Read(materialize.Run{Table: "endpoint_7_x", Values: values}, env())
		if err != nil && compiler.Mistakes(err) == nil {
			t.Fatalf("the read of %q is refused with a bug: %v\n%s", text, err, p.Execution)
		}
		if err == nil && strings.Count(read.SQL, "FROM") == strings.Count(read.SQL, "FROM endpoint_7_x ") && !strings.Contains(read.SQL, "team_id = 7") {
			t.Errorf("the read of %q has no guard: %s", text, read.SQL)
		}
	})
}

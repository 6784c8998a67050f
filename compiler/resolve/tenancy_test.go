package resolve_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// nasty are queries that try to bypass the guard of their project, by every way to read a table.
var nasty = []string{
	"select * from events",
	"select event from events where team_id = 8 or 1 = 1",
	"select event from events where event = 'a' or team_id != 7",
	"select team_id, count() from events group by team_id",
	"select e.team_id from events e",
	"select a.event from events a join events b on 1 = 1",
	"select a.event from events a left join events b on b.team_id = 8",
	"select b.event from events a right join events b on a.uuid = b.uuid",
	"select b.event from events a full join events b on a.uuid = b.uuid",
	"select b.event from events a left anti join events b on a.uuid = b.uuid",
	"select b.event from events a right semi join events b on a.uuid = b.uuid",
	"select b.event from events a any join events b on a.uuid = b.uuid",
	"select b.event from events a asof join events b on a.uuid = b.uuid and a.timestamp >= b.timestamp",
	"select b.event from events a, events b, persons c, groups d",
	"select b.event from events a cross join events b",
	"select a.event from events a join events b using (uuid, team_id)",
	"select a.event from events a join persons p on a.person_id = p.id join groups g on g.key = a.$group_0",
	"select person_id, person.properties.email, pdi.person.properties.email, group_0.properties.x, organization.key from events",
	"select e.pdi.person.pdi.distinct_id from events e",
	"select p.pdi.person.id from persons p",
	"select * from persons",
	"select * from raw_persons",
	"select * from groups",
	"select * from raw_groups",
	"select * from person_distinct_ids",
	"select * from raw_person_distinct_ids",
	"select * from person_distinct_id_overrides",
	"select * from raw_person_distinct_id_overrides",
	"select person.properties.x from person_distinct_ids",
	"select (select count() from events) as n, (select count() from persons) as m",
	"select event from events where distinct_id in (select distinct_id from person_distinct_ids where person_id in (select id from persons))",
	"select event from (select event from (select event from events) as a) as b",
	"select event from events union all select event from events union all (select event from events except select event from events)",
	"with x as (select event from events), y as (select a.event from x a join x b on a.event = b.event) select * from y",
	"with events as (select event from events) select event from events",
	"with x as (select * from events) select a.properties.k from x a left join x b on a.uuid = b.uuid",
	"with (select count() from events) as n select n, n + 1 from persons",
	"select arrayMap(x -> (select count() from events), [1]) from events",
	"select arrayMap(events -> events.1, [(1, 2)]), event from events",
	"select properties as events, events.event from events",
	"select p.a.b from (select properties as p from events union all select properties from persons) as t",
	"select event from events array join elements_chain_texts as events",
	"select event, count() over (partition by team_id) from events",
	"select event from events sample 1/2 prewhere 1 = 1 where 1 = 1 or 2 = 2",
	"select event from events where 1 having 1 or team_id = 8 order by team_id limit 1 by team_id",
	"select columns('.*') from events",
	"select e.* exclude (uuid) replace (1 as event) from events e join events f on e.uuid = f.uuid",
	"select if((select max(team_id) from raw_persons) > 1, 1, 0)",
	"select event from events where (select 1 from persons limit 1) = 1",
	"select * from cohort_people",
	"select * from raw_cohort_people",
	"select * from static_cohort_people",
	"select person.properties.x from cohort_people where cohort_id = 5 or team_id = 8",
	"select c.team_id from static_cohort_people c right join events e on c.person_id = e.person_id",
	"select event from events where person_id in cohort 5 or team_id = 8",
	"select event from events where person_id not in cohort 'paying'",
	"with raw_cohort_people as (select 1 as person_id, 5 as cohort_id, 1 as version, 1 as sign) select event from events where person_id in cohort 5",
	"select p.id from events e left join persons p on p.id = e.person_id and p.id in cohort 5",
	"select number, event from numbers(10) n join events e on n.number = e.team_id",
}

func TestEveryScanIsGuarded(t *testing.T) {
	all, kept := database(t, "Europe/Berlin"), *database(t, "Europe/Berlin")
	kept.EventsFrom = noon.Add(-365 * 24 * time.Hour)
	for _, text := range nasty {
		for name, db := range map[string]*schema.Database{"": all, "kept for a time": &kept} {
			t.Run(text+"|"+name, func(t *testing.T) { checkGuards(t, text, db) })
		}
	}
}

func checkGuards(t *testing.T, text string, db *schema.Database) {
	t.Helper()
	tree, _, _, err := resolve.Query(mustParse(t, text), resolve.World{Database: db, Now: noon, Spend: budget.New(nil)})
	if err != nil {
		t.Fatalf("Query: %v", err)
	}
	c := guardChecker{t: t, from: db.EventsFrom}
	c.query(tree)
	if c.scans == 0 {
		t.Error("no scan in the resolved query: the test shows nothing")
	}
}

// guardChecker walks a resolved query and fails on each table read without the project's guard.
type guardChecker struct {
	t     *testing.T
	from  time.Time // of the earliest events that may be read
	scans int
	ctes  map[string]bool
	seen  map[uintptr]bool // the nodes visited
}

func (c *guardChecker) query(q resolved.Query) { c.walk(reflect.ValueOf(q)) }

// walk visits a value of any type, so that no node and no child of one can be forgotten.
func (c *guardChecker) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		c.walk(v.Elem())
	case reflect.Pointer:
		if v.IsNil() || c.seen[v.Pointer()] {
			return
		}
		if c.seen == nil {
			c.seen = map[uintptr]bool{}
		}
		c.seen[v.Pointer()] = true
		c.node(v.Interface())
		c.walk(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			c.walk(field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.walk(v.Index(i))
		}
	default: // other types contain no nodes
	}
}

func (c *guardChecker) node(n any) {
	switch n := n.(type) {
	case *resolved.Select:
		c.define(n.With)
	case *resolved.SetQuery:
		c.define(n.With)
	case *resolved.Join:
		for _, side := range []resolved.Table{n.Left, n.Right} {
			if scan, bare := side.(*resolved.Scan); bare {
				c.t.Errorf("the scan of %s stands bare under a join", scan.Table)
			}
		}
	case *resolved.Scan:
		c.scan(n)
	case *resolved.CTERef:
		if !c.ctes[n.Name] {
			c.t.Errorf("table %s is no CTE", n.Name)
		}
	}
}

func (c *guardChecker) define(list []*resolved.CTE) {
	for _, cte := range list {
		if c.ctes == nil {
			c.ctes = map[string]bool{}
		}
		if cte.Query == nil {
			c.t.Errorf("CTE %s is no query", cte.Name)
		}
		c.ctes[cte.Name] = true
	}
}

func (c *guardChecker) scan(s *resolved.Scan) {
	c.scans++
	if _, known := schema.PhysicalTable(s.Table); !known {
		c.t.Errorf("%s is no physical table", s.Table)
	}
	guard, ok := c.ofProject(s).(*resolved.Native)
	if !ok || guard.Name != "equals" || len(guard.Args) != 2 {
		c.t.Errorf("the scan of %s has no guard: %#v", s.Table, s.Guard)
		return
	}
	column, isColumn := guard.Args[0].(*resolved.Column)
	value, isConst := guard.Args[1].(*resolved.Const)
	if !isColumn || column.Name != "team_id" || column.Table != s.Alias || len(column.Path) > 0 {
		c.t.Errorf("the guard of %s is not about its own team_id: %#v", s.Table, guard.Args[0])
	}
	if !isConst || value.Value != int64(project) {
		c.t.Errorf("the guard of %s lets through %#v", s.Table, guard.Args[1])
	}
}

// ofProject returns the guard of a scan without its condition on the time of events, which it checks.
func (c *guardChecker) ofProject(s *resolved.Scan) resolved.Expr {
	if c.from.IsZero() || s.Table != physical.Events {
		return s.Guard
	}
	both, ok := s.Guard.(*resolved.Logic)
	if !ok || both.Or || len(both.Args) != 2 {
		c.t.Fatalf("the guard of events is not about their project and their time: %#v", s.Guard)
	}
	since, ok := both.Args[1].(*resolved.Native)
	if !ok || since.Name != "greaterOrEquals" || len(since.Args) != 2 {
		c.t.Fatalf("the guard of events is not about their time: %#v", both.Args[1])
	}
	column, isColumn := since.Args[0].(*resolved.Column)
	value, isConst := since.Args[1].(*resolved.Const)
	if !isColumn || column.Name != "timestamp" || column.Table != s.Alias || !isConst || value.Value != c.from {
		c.t.Errorf("the guard of events lets through %#v from %#v on", since.Args[0], since.Args[1])
	}
	return both.Args[0]
}

package resolve_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Every place is exactly that of the name or argument, and the nearest name is given.
func TestHints(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"field below a virtual table", "select e.person.propertis.x from events e", "16:25: Field not found: propertis → properties"},
		{"field of a nested join", "select pdi.person.is_identifed from events", "18:30: Field not found: is_identifed → is_identified"},
		{"quoted field", "select `evnt` from events", "7:13: Unable to resolve field: evnt → event"},
		{"text in double quotes", `select event = "x" from events`, "15:18: Unable to resolve field: x → Double quotes are for names. Write text in single quotes: 'x'"},
		{"text in double quotes near a name", `select event = "evnt's" from events`, `15:23: Unable to resolve field: evnt's → Double quotes are for names. Write text in single quotes: 'evnt\'s'`},
		{"a chain in double quotes", `select "evnt"."x" from events`, "7:13: Unable to resolve field: evnt → event"},
		{"property of an unknown field", "select propertis.plan from events", "7:16: Unable to resolve field: propertis → properties"},
		{"table before the column", "select evnts.event from events", "7:12: Unable to resolve field: evnts → events"},
		{"table of the asterisk", "select evnts.* from events", "7:12: Unable to resolve field: evnts → events"},
		{"alias", "select event as name from events order by nam", "42:45: Unable to resolve field: nam → name"},
		{"parameter of a lambda", "select arrayMap(item -> itme + 1, [1])", "24:28: Unable to resolve field: itme → item"},
		{"group by the type's name", "select organisation.key from events", "7:19: Unable to resolve field: organisation → organization"},
		{"column of a subquery", "select t.nunber from (select 1 as number) as t", "9:15: Field not found: nunber → number"},
		{"table with an alias", "select 1 from evnts as e", "14:19: Unknown table `evnts`. → events"},
		{"table of a CTE", "with totals as (select 1 as n) select n from total", "45:50: Unknown table `total`. → totals"},
		{"table function", "select 1 from nmbers(5)", "14:20: Unknown table `nmbers`. → numbers"},
		{"function", "select lengthh(event) from events", "7:14: Unsupported function call 'lengthh(...)'. Perhaps you meant 'length(...)'? → length"},
		{"aggregate with a combinator", "select countIff(1) from events", "7:15: Unsupported function call 'countIff(...)'. Perhaps you meant 'countIf(...)'? → countIf"},
		{"column of USING", "select 1 from events a join person_distinct_ids b using (distict_id)", "57:67: Unable to resolve field: distict_id → distinct_id"},
		{"column of USING that the left side lacks", "select 1 from persons a join person_distinct_ids b using (person_id)", "58:67: Unable to resolve field: person_id"},
		{"window", "select count() over days from events window day as (order by timestamp)", "20:24: Unknown window: days → day"},
		{"unit", "select dateDiff('dya', timestamp, now()) from events", "16:21: Unknown unit of time for 'dateDiff': dya → day"},
		{"unit that has no interval", "select dateAdd('weekdays', 1, now())", "15:25: Unknown unit of time for 'dateAdd': weekdays"},
		{"type", "select event::strng, cast(1 as integr) from events", "14:19: Unsupported type cast: strng → string\n31:37: Unsupported type cast: integr → integer"},
		{"aggregate of arrayReduce", "select arrayReduce('smu', [1])", "19:24: Invalid parametric function in 'arrayReduce', 'smu' is not supported. It takes one of " +
			"avg, avgMap, avgMapState, avgState, count, countMap, countMapState, max, maxMap, maxMapState, median, min, minMap, minMapState, " +
			"sum, sumMap, sumMapState, uniq, uniqMap, uniqMapState, uniqState → sum"},
		{"replaced column", "select * replace (1 as evnt) from events", "23:27: Column \"evnt\" in REPLACE list was not found in events → event"},
		{"second table of a name", "select 1 from events a join (select 1) a on 1", "39:40: Already have joined a table called \"a\". Can't join another one with the same name."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, mistakes(t, tt.in)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

func TestSurvey(t *testing.T) {
	db := database(t, "UTC")
	use := func(start, end int, scope schema.PropertyScope, group int, name string) resolve.PropertyUse {
		return resolve.PropertyUse{At: diag.Span{Start: start, End: end}, Key: schema.PropertyKey{Scope: scope, Group: group, Name: name}}
	}
	tests := []struct {
		name, in string
		want     []resolve.PropertyUse
	}{
		{"of events", "select properties.a, properties['b'] from events", []resolve.PropertyUse{
			use(18, 19, schema.EventProperty, 0, "a"), use(32, 35, schema.EventProperty, 0, "b"),
		}},
		{"of persons", "select person.properties.a from events", []resolve.PropertyUse{use(25, 26, schema.PersonProperty, 0, "a")}},
		{"of groups", "select group_1.properties.a from events", []resolve.PropertyUse{use(26, 27, schema.GroupProperty, 1, "a")}},
		{"through a subquery", "select properties.a from (select properties from events) as t", []resolve.PropertyUse{use(18, 19, schema.EventProperty, 0, "a")}},
		{"once for a place", "select case properties.a when b then 1 when 'x' then 2 end, 1 as b from events", []resolve.PropertyUse{use(23, 24, schema.EventProperty, 0, "a")}},
		{"not what is deeper, or elements", "select properties.a.b, properties.1 from events", nil},
		{"with mistakes", "select nope, properties.a from events", []resolve.PropertyUse{use(24, 25, schema.EventProperty, 0, "a")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, got, _ := resolve.Survey(mustParse(t, tt.in), resolve.World{Database: db, Now: noon, Spend: budget.New(nil)})
			for i := range got {
				if got[i].Storage.Kind != schema.NativeJSON {
					t.Errorf("%v is stored as %v, want native JSON", got[i].Key, got[i].Storage)
				}
				got[i].Storage = schema.Storage{}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Survey(%q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

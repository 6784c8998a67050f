package ingest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// captured makes records of lines. An event without uuid gets one from its place, one without timestamp the time of its place, in minutes.
func captured(tb testing.TB, lines string) []record.Record {
	tb.Helper()
	var records []record.Record
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		line = strings.TrimSpace(line)
		n := len(records)
		if !strings.Contains(line, `"timestamp"`) {
			line = fmt.Sprintf(`{"timestamp":"2024-03-04T10:%02d:00Z",`, n) + line[1:]
		}
		r, err := new(record.Parser).Parse([]byte(line))
		if err != nil {
			tb.Fatalf("%s: %v", line, err)
		}
		if !r.HasUUID {
			r.UUID = uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%d %s", n, line))
			r.HasUUID = true
		}
		r.Arrived = arrived.Add(time.Duration(n) * time.Second)
		records = append(records, r)
	}
	return records
}

var arrived = time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)

func deliver(tb testing.TB, i *ingest.Ingester, options ingest.Options, records []record.Record) ingest.Report {
	tb.Helper()
	options.Now = now
	report, err := i.Deliver(tb.Context(), options, slices.Clone(records))
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

// state is what a project has, with the ids of persons replaced by the distinct id that makes them.
type state struct{ Events, Persons, IDs, Overrides, Groups []string }

func stateOf(tb testing.TB, c *clickhouse.Client, project int64, ids ...string) state {
	tb.Helper()
	var pairs []string
	for _, id := range ids {
		pairs = append(pairs, ingest.PersonUUID(project, id).String(), "<"+id+">")
	}
	names := strings.NewReplacer(pairs...)
	get := func(sql string) []string {
		rows := ask(tb, c, project, sql)
		for n := range rows {
			rows[n] = names.Replace(rows[n])
		}
		slices.Sort(rows)
		return rows
	}
	return state{
		Events: get("SELECT timestamp, event, distinct_id, uuid, toJSONString(properties), created_at, person_id, person_mode, person_created_at, toJSONString(person_properties), " +
			"`$group_0`, toJSONString(group0_properties), group0_created_at, `$group_1` FROM events"),
		Persons: get("SELECT id, toJSONString(argMax(properties, version)), argMax(created_at, version), argMax(is_identified, version), max(version) " +
			"FROM person GROUP BY id HAVING argMax(is_deleted, version) = 0"),
		IDs:       get("SELECT distinct_id, argMax(person_id, version), max(version) FROM person_distinct_id2 GROUP BY distinct_id"),
		Overrides: get("SELECT distinct_id, argMax(person_id, version), max(version) FROM person_distinct_id_overrides GROUP BY distinct_id"),
		Groups:    get("SELECT group_type_index, group_key, toJSONString(argMax(group_properties, _timestamp)), argMax(created_at, _timestamp) FROM groups GROUP BY 1, 2"),
	}
}

// TestDeliverPeople tests the rules of persons and merges (contract capture.md, sections 8 and 9) one by one. Each case is delivered at once and event by
// event, by new ingesters.
func TestDeliverPeople(t *testing.T) {
	type lines = []string
	const (
		events = `SELECT event, distinct_id, if(o.distinct_id = '', toString(e.person_id), toString(o.person_id)), e.person_mode, toJSONString(e.person_properties)
			FROM events e LEFT JOIN (SELECT distinct_id, argMax(person_id, version) AS person_id FROM person_distinct_id_overrides GROUP BY distinct_id) o
			ON e.distinct_id = o.distinct_id ORDER BY e.created_at`
		persons = `SELECT id, toJSONString(argMax(properties, version)), argMax(created_at, version), argMax(is_identified, version)
			FROM person GROUP BY id HAVING argMax(is_deleted, version) = 0 ORDER BY 2, 3`
		ids    = `SELECT distinct_id, argMax(person_id, version) FROM person_distinct_id2 GROUP BY distinct_id ORDER BY distinct_id`
		stored = `SELECT toJSONString(properties), "$group_0" FROM events ORDER BY created_at`
	)
	tests := []struct {
		name, in                     string
		events, persons, ids, stored lines
		noTypes                      bool
	}{
		{
			name:    "an unknown id makes a person as old as the event, and an earlier event does not move that",
			in:      `{"event":"a","distinct_id":"x"}` + "\n" + `{"event":"b","distinct_id":"x","timestamp":"2020-01-01"}`,
			persons: lines{`["<x>", "{}", "2024-03-04T10:00:00Z", 0]`},
			ids:     lines{`["x", "<x>"]`},
		},
		{
			name: "$set_once, $set and $unset within one event, in this order",
			in: `{"event":"a","distinct_id":"x","properties":{"$unset":["c"],"$set":{"a":2,"c":2},"$set_once":{"a":1,"b":1,"c":1}}}
				{"event":"b","distinct_id":"x","properties":{"$set":{"a":3},"$set_once":{"b":9,"c":9},"$unset":{"a":1}}}`,
			events:  lines{`["a", "x", "<x>", "full", "{\"a\":2,\"b\":1}"]`, `["b", "x", "<x>", "full", "{\"b\":1,\"c\":9}"]`},
			persons: lines{`["<x>", "{\"b\":1,\"c\":9}", "2024-03-04T10:00:00Z", 0]`},
		},
		{
			name: "items of $unset that are no strings are left out",
			in: `{"event":"a","distinct_id":"x","properties":{"$set":{"a":1,"b":1,"1":1}}}
				{"event":"b","distinct_id":"x","properties":{"$unset":["a",null,1]}}`,
			persons: lines{`["<x>", "{\"1\":1,\"b\":1}", "2024-03-04T10:00:00Z", 0]`},
		},
		{
			name: "$set_once fills null",
			in: `{"event":"a","distinct_id":"x","properties":{"$set":{"a":null,"b":1}}}
				{"event":"b","distinct_id":"x","properties":{"$set":{"b":null},"$set_once":{"a":1,"c":null}}}
				{"event":"c","distinct_id":"x","properties":{"$set_once":{"b":2,"c":3}}}`,
			persons: lines{`["<x>", "{\"a\":1,\"b\":2,\"c\":3}", "2024-03-04T10:00:00Z", 0]`},
		},
		{
			name: "$exception, $$heatmap and $groupidentify change no person, but record what they set",
			in: `{"event":"a","distinct_id":"x","properties":{"$set":{"a":1}}}
				{"event":"$exception","distinct_id":"x","properties":{"$set":{"a":2}}}
				{"event":"$$heatmap","distinct_id":"x","properties":{"$set_once":{"b":2}}}
				{"event":"$groupidentify","distinct_id":"x","properties":{"$unset":["a"],"$group_type":"org","$group_key":"o"}}`,
			events: lines{
				`["a", "x", "<x>", "full", "{\"a\":1}"]`, `["$exception", "x", "<x>", "full", "{\"a\":2}"]`,
				`["$$heatmap", "x", "<x>", "full", "{\"a\":1}"]`, `["$groupidentify", "x", "<x>", "full", "{\"a\":1}"]`,
			},
			persons: lines{`["<x>", "{\"a\":1}", "2024-03-04T10:00:00Z", 0]`},
		},
		{
			name: "a person gets properties of its events, and the first of them as initial ones",
			in: `{"event":"a","distinct_id":"x","properties":{"$browser":"Firefox","$os":"Linux","utm_source":"ad","other":1,"$referrer":null,"$set":{"$os":"own"},"$set_once":{"$initial_os":"mine"}}}
				{"event":"b","distinct_id":"x","properties":{"$browser":"Safari","$current_url":"u","$set":{"n":1}}}`,
			persons: lines{`["<x>", "{\"$browser\":\"Safari\",\"$current_url\":\"u\",\"$initial_browser\":\"Firefox\",\"$initial_current_url\":\"u\",` +
				`\"$initial_os\":\"mine\",\"$initial_utm_source\":\"ad\",\"$os\":\"own\",\"n\":1,\"utm_source\":\"ad\"}", "2024-03-04T10:00:00Z", 0]`},
		},
		{
			name: "another page alone leaves the person, its event records it, $set takes it along",
			in: `{"event":"a","distinct_id":"x","properties":{"$current_url":"1"}}
				{"event":"b","distinct_id":"x","properties":{"$current_url":"2"}}
				{"event":"c","distinct_id":"x"}
				{"event":"$set","distinct_id":"x","properties":{"$current_url":"3"}}`,
			events: lines{
				`["a", "x", "<x>", "full", "{\"$current_url\":\"1\",\"$initial_current_url\":\"1\"}"]`,
				`["b", "x", "<x>", "full", "{\"$current_url\":\"2\",\"$initial_current_url\":\"1\"}"]`,
				`["c", "x", "<x>", "full", "{\"$current_url\":\"1\",\"$initial_current_url\":\"1\"}"]`,
				`["$set", "x", "<x>", "full", "{\"$current_url\":\"3\",\"$initial_current_url\":\"1\"}"]`,
			},
		},
		{
			name: "another version of an app, campaign or country changes the person, with all that is passing; another postal code does not",
			in: `{"event":"a","distinct_id":"x","properties":{"$app_version":"1","utm_source":"s","$os":"iOS","$set":{"$geoip_country_name":"A","$geoip_postal_code":"1"}}}
				{"event":"b","distinct_id":"x","properties":{"$app_version":"2","$os":"Linux"}}
				{"event":"c","distinct_id":"x","properties":{"$os":"Windows","$set":{"$geoip_postal_code":"2"}}}
				{"event":"d","distinct_id":"x","properties":{"utm_source":"t"}}
				{"event":"e","distinct_id":"x","properties":{"$set":{"$geoip_country_name":"B"}}}`,
			persons: lines{`["<x>", "{\"$app_version\":\"2\",\"$geoip_country_name\":\"B\",\"$geoip_postal_code\":\"1\",\"$initial_app_version\":\"1\",` +
				`\"$initial_os\":\"iOS\",\"$initial_utm_source\":\"s\",\"$os\":\"Linux\",\"utm_source\":\"t\"}", "2024-03-04T10:00:00Z", 0]`},
		},
		{
			name:    "a server's system is not its user's",
			in:      `{"event":"a","distinct_id":"x","properties":{"$is_server":true,"$os":"Linux","$os_version":"6","$app_name":"api"}}`,
			persons: lines{`["<x>", "{\"$app_name\":\"api\",\"$initial_app_name\":\"api\"}", "2024-03-04T10:00:00Z", 0]`},
		},
		{
			name:   "nor does its name become the system",
			in:     `{"event":"a","distinct_id":"x","properties":{"$is_server":true,"$os_name":"Linux"}}`,
			stored: lines{`["{\"$is_server\":true,\"$os_name\":\"Linux\"}", ""]`},
		},
		{
			name: "events without profile make no person, change none, and lose what would; only false is off",
			in: `{"event":"a","distinct_id":"x","properties":{"$process_person_profile":false,"$set":{"a":1},"$set_once":{"b":1},"$unset":["c"],"k":1,"$groups":{"org":"o"}}}
				{"event":"b","distinct_id":"y","properties":{"$process_person_profile":"false","$set":{"a":1},"$groups":{"org":"o"}}}
				{"event":"c","distinct_id":"y","properties":{"$process_person_profile":false,"$set":{"a":2}}}
				{"event":"d","distinct_id":"y","timestamp":"2024-03-04T10:02:01Z","properties":{"$process_person_profile":false}}`,
			events: lines{
				`["a", "x", "<x>", "propertyless", "{}"]`, `["b", "y", "<y>", "full", "{\"a\":1}"]`,
				`["c", "y", "<y>", "propertyless", "{}"]`, `["d", "y", "<y>", "force_upgrade", "{}"]`,
			},
			persons: lines{`["<y>", "{\"a\":1}", "2024-03-04T10:01:00Z", 0]`},
			ids:     lines{`["y", "<y>"]`},
			stored: lines{
				`["{\"$groups\":{\"org\":\"o\"},\"$process_person_profile\":false,\"k\":1}", ""]`,
				`["{\"$group_0\":\"o\",\"$groups\":{\"org\":\"o\"},\"$set\":{\"a\":1}}", "o"]`,
				`["{\"$process_person_profile\":false}", ""]`, `["{\"$process_person_profile\":false}", ""]`,
			},
		},
		{
			name: "an event without profile is of no group, and $groups counts more than $group_0",
			in: `{"event":"a","distinct_id":"x","properties":{"$process_person_profile":false,"$group_0":"o"}}
				{"event":"b","distinct_id":"y","properties":{"$group_0":"old","$groups":{"org":"new"}}}
				{"event":"c","distinct_id":"y","properties":{"$group_0":"own"}}`,
			stored: lines{
				`["{\"$process_person_profile\":false}", ""]`, `["{\"$group_0\":\"new\",\"$groups\":{\"org\":\"new\"}}", "new"]`,
				`["{\"$group_0\":\"own\"}", "own"]`,
			},
		},
		{
			name: "events that speak of people alone are kept, without person and group type, if the newest route took their id for a mistake",
			in: `{"event":"$identify","distinct_id":"anonymous","shared_id":true,"properties":{"$process_person_profile":false,"$anon_distinct_id":"y"}}
				{"event":"$groupidentify","distinct_id":"system","shared_id":true,"timestamp":"2024-03-04T10:00:01Z","properties":{"$process_person_profile":false,"$group_type":"t","$group_key":"k"}}
				{"event":"$groupidentify","distinct_id":"system","properties":{"$process_person_profile":false,"$group_type":"t","$group_key":"k"}}`,
			events:  lines{`["$identify", "anonymous", "<anonymous>", "propertyless", "{}"]`, `["$groupidentify", "system", "<system>", "propertyless", "{}"]`},
			noTypes: true,
		},
		{
			name: "null in $set_once takes no passing properties along",
			in: `{"event":"a","distinct_id":"x","properties":{"$current_url":"1"}}
				{"event":"b","distinct_id":"x","properties":{"$current_url":"2","$set_once":{"$initial_gclid":null}}}`,
			persons: lines{`["<x>", "{\"$current_url\":\"1\",\"$initial_current_url\":\"1\"}", "2024-03-04T10:00:00Z", 0]`},
		},
		{
			name: "events that speak of people alone are dropped without profile",
			in: `{"event":"$identify","distinct_id":"x","properties":{"$process_person_profile":false,"$anon_distinct_id":"y"}}
				{"event":"$create_alias","distinct_id":"x","properties":{"$process_person_profile":false,"alias":"y"}}
				{"event":"$merge_dangerously","distinct_id":"x","properties":{"$process_person_profile":false,"alias":"y"}}
				{"event":"$groupidentify","distinct_id":"x","properties":{"$process_person_profile":false,"$group_type":"t","$group_key":"k"}}
				{"event":"$set","distinct_id":"x","properties":{"$process_person_profile":false,"$set":{"a":1}}}`,
			events: lines{`["$set", "x", "<x>", "propertyless", "{}"]`},
		},
		{
			name: "earlier events without profile join the person, made by an event or by a merge",
			in: `{"event":"a","distinct_id":"anon","properties":{"$process_person_profile":false}}
				{"event":"b","distinct_id":"same","properties":{"$process_person_profile":false}}
				{"event":"$identify","distinct_id":"user","properties":{"$anon_distinct_id":"anon"}}
				{"event":"c","distinct_id":"same"}`,
			events: lines{
				`["a", "anon", "<user>", "propertyless", "{}"]`, `["b", "same", "<same>", "propertyless", "{}"]`,
				`["$identify", "user", "<user>", "full", "{}"]`, `["c", "same", "<same>", "full", "{}"]`,
			},
			ids: lines{`["anon", "<user>"]`, `["same", "<same>"]`, `["user", "<user>"]`},
		},
		{
			name: "the id without a person joins the other's, also an identified one",
			in: `{"event":"p","distinct_id":"new","properties":{"$process_person_profile":false}}
				{"event":"$identify","distinct_id":"old","properties":{"$anon_distinct_id":"older"}}
				{"event":"$identify","distinct_id":"new","properties":{"$anon_distinct_id":"old","$set":{"a":1}}}`,
			events: lines{
				`["p", "new", "<old>", "propertyless", "{}"]`,
				`["$identify", "old", "<old>", "full", "{}"]`, `["$identify", "new", "<old>", "full", "{\"a\":1}"]`,
			},
			persons: lines{`["<old>", "{\"a\":1}", "2024-03-04T10:01:00Z", 1]`},
			ids:     lines{`["new", "<old>"]`, `["old", "<old>"]`, `["older", "<old>"]`},
		},
		{
			name: "two persons become one: the target wins, gaps are filled, then the event's $set; the older creation; all ids move",
			in: `{"event":"a","distinct_id":"s","properties":{"$set":{"k":"s","gap":"s","own":"s"}}}
				{"event":"$create_alias","distinct_id":"s","properties":{"alias":"s2"}}
				{"event":"t","distinct_id":"t","properties":{"$set":{"k":"t"}}}
				{"event":"$merge_dangerously","distinct_id":"t","properties":{"alias":"s2","$set":{"own":"e"},"$set_once":{"gap":"e"}}}
				{"event":"later","distinct_id":"s"}`,
			events: lines{
				`["a", "s", "<t>", "full", "{\"gap\":\"s\",\"k\":\"s\",\"own\":\"s\"}"]`,
				`["$create_alias", "s", "<t>", "full", "{\"gap\":\"s\",\"k\":\"s\",\"own\":\"s\"}"]`,
				`["t", "t", "<t>", "full", "{\"k\":\"t\"}"]`,
				`["$merge_dangerously", "t", "<t>", "full", "{\"gap\":\"s\",\"k\":\"t\",\"own\":\"e\"}"]`,
				`["later", "s", "<t>", "full", "{\"gap\":\"s\",\"k\":\"t\",\"own\":\"e\"}"]`,
			},
			persons: lines{`["<t>", "{\"gap\":\"s\",\"k\":\"t\",\"own\":\"e\"}", "2024-03-04T10:00:00Z", 1]`},
			ids:     lines{`["s", "<t>"]`, `["s2", "<t>"]`, `["t", "<t>"]`},
		},
		{
			name: "an identified source stays, the target is identified all the same and gets the $set",
			in: `{"event":"$identify","distinct_id":"a","properties":{"$anon_distinct_id":"a1"}}
				{"event":"b","distinct_id":"b"}
				{"event":"$create_alias","distinct_id":"b","properties":{"alias":"a","$set":{"n":1}}}
				{"event":"$identify","distinct_id":"b","properties":{"$anon_distinct_id":"a1"}}`,
			persons: lines{`["<b>", "{\"n\":1}", "2024-03-04T10:01:00Z", 1]`, `["<a>", "{}", "2024-03-04T10:00:00Z", 1]`},
			ids:     lines{`["a", "<a>"]`, `["a1", "<a>"]`, `["b", "<b>"]`},
		},
		{
			name: "$identify without another id, or with its own, identifies nobody",
			in: `{"event":"$identify","distinct_id":"x","properties":{"$set":{"a":1}}}
				{"event":"$identify","distinct_id":"x","properties":{"$anon_distinct_id":"x"}}
				{"event":"$create_alias","distinct_id":"x","properties":{"alias":null}}`,
			persons: lines{`["<x>", "{\"a\":1}", "2024-03-04T10:00:00Z", 0]`},
			ids:     lines{`["x", "<x>"]`},
		},
	}
	c := client(t)
	for _, tt := range tests {
		for _, split := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s split %t", tt.name, split), func(t *testing.T) {
				records := captured(t, tt.in)
				options := ingest.Options{Project: project()}
				size := len(records)
				if split {
					size = 1
				}
				for batch := range slices.Chunk(records, size) {
					report := deliver(t, ingest.New(c), options, batch)
					options.GroupTypes = report.GroupTypes
				}
				var pairs []string
				for _, id := range []string{"x", "y", "s", "t", "a", "b", "anon", "same", "user", "old", "new", "older", "anonymous", "system"} {
					pairs = append(pairs, ingest.PersonUUID(options.Project, id).String(), "<"+id+">")
				}
				if tt.noTypes && len(options.GroupTypes) > 0 {
					t.Errorf("it has the group types %v", options.GroupTypes)
				}
				for name, q := range map[string]struct {
					sql  string
					want []string
				}{"events": {events, tt.events}, "persons": {persons, tt.persons}, "ids": {ids, tt.ids}, "stored": {stored, tt.stored}} {
					got := ask(t, c, options.Project, q.sql)
					for n := range got {
						got[n] = strings.NewReplacer(pairs...).Replace(got[n])
					}
					if diff := gocmp.Diff(q.want, got); q.want != nil && diff != "" {
						t.Errorf("%s (-want +got):\n%s", name, diff)
					}
				}
			})
		}
	}
}

// TestIllegalIDs merges nobody by ids that come from mistakes, on either side, whether the events are captured or imported.
func TestIllegalIDs(t *testing.T) {
	illegal := []string{"", "  ", "[object Object]", "NaN", "None", "none", "null", "0", "$posthog_cookieless", "'null'", `"NaN"`, "'Guest'"}
	for _, id := range []string{"anonymous", "guest", "distinctid", "distinct_id", "id", "not_authenticated", "email", "undefined", "true", "false"} {
		illegal = append(illegal, id, strings.ToUpper(id), "'"+id+"'", `"`+id+`"`)
	}
	c := client(t)
	for _, legal := range []bool{false, true} {
		ids := illegal
		if legal {
			ids = []string{"nan", "NONE", "Null", "00", "[Object Object]", " guest", "'guest", "ids", "0.0"}
		}
		var lines strings.Builder
		for n, id := range ids {
			fmt.Fprintf(&lines, "{\"event\":\"$identify\",\"distinct_id\":\"r%d\",\"properties\":{\"$anon_distinct_id\":%q}}\n", n, id)
			if id != "" {
				fmt.Fprintf(&lines, "{\"event\":\"$create_alias\",\"distinct_id\":%q,\"properties\":{\"alias\":\"s%d\"}}\n", id, n)
			}
		}
		in := strings.ReplaceAll(lines.String(), `{"event"`, `{"timestamp":"2024-03-04","event"`)
		// In formats other than lines, a field names the other id.
		others := captured(t, in)
		for n := range others {
			name := map[string]string{"$identify": "$anon_distinct_id", "$create_alias": "alias"}[others[n].Event]
			others[n].OtherID, _ = others[n].Properties.Get(name).Text()
			others[n].Event = "a"
		}
		ways := map[string]func(ingest.Options) (ingest.Report, error){
			"captured": func(o ingest.Options) (ingest.Report, error) {
				return ingest.New(c).Deliver(t.Context(), o, captured(t, in))
			},
			"lines": func(o ingest.Options) (ingest.Report, error) {
				return ingest.New(c).Import(t.Context(), o, ingesttest.Lines(in))
			},
			"another format": func(o ingest.Options) (ingest.Report, error) {
				return ingest.New(c).Import(t.Context(), o, &given{others})
			},
		}
		for way, take := range ways {
			p := project()
			report, err := take(ingest.Options{Project: p, Now: now})
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("[%d, 0, 0]", report.Events)
			if legal {
				want = fmt.Sprintf("[%d, %d, %d]", len(ids), len(ids), 2*len(ids))
			}
			got := ask(t, c, p, `SELECT count(), countIf(is_identified = 1), (SELECT count() FROM person_distinct_id2) - count()
				FROM (SELECT argMax(is_identified, version) AS is_identified FROM person GROUP BY id HAVING argMax(is_deleted, version) = 0)`)
			if got[0] != want {
				t.Errorf("%s, legal %t: %s persons, identified, more ids; want %s", way, legal, got[0], want)
			}
		}
	}
}

// given is a reader of records.
type given struct{ records []record.Record }

func (g *given) Read() (record.Record, error) {
	if len(g.records) == 0 {
		return record.Record{}, io.EOF
	}
	first := g.records[0]
	g.records = g.records[1:]
	return first, nil
}

func TestDeliverGroups(t *testing.T) {
	c, i := client(t), ingest.New(client(t))
	options := ingest.Options{Project: project()}
	report := deliver(t, i, options, captured(t, `
		{"event":"$groupidentify","distinct_id":"$org_acme","properties":{"$group_type":"org","$group_key":"acme","$group_set":{"a":1,"b":1}}}
		{"event":"login","distinct_id":"x","properties":{"$groups":{"org":"acme","team":5,"t2":"k","t3":"k","t4":"k","t5":"k","t6":"k"}}}`))
	want := []ingest.GroupType{{Name: "org", Index: 0}, {Name: "team", Index: 1}, {Name: "t2", Index: 2}, {Name: "t3", Index: 3}, {Name: "t4", Index: 4}}
	if diff := gocmp.Diff(want, report.GroupTypes); diff != "" {
		t.Errorf("group types (-want +got):\n%s", diff)
	}
	options.GroupTypes = report.GroupTypes
	for n, set := range []string{`{"b":2}`, `{"b":1}`, `{"b":2}`} { // there and back: no insert may be taken for an earlier one
		line := fmt.Sprintf(`{"event":"$groupidentify","distinct_id":"x","timestamp":"2024-03-04T11:0%d:00Z","properties":{"$group_type":"org","$group_key":"acme","$group_set":%s}}`, n, set)
		deliver(t, i, options, captured(t, line))
	}
	got := stateOf(t, c, options.Project, "x", "$org_acme")
	if diff := gocmp.Diff([]string{`[0, "acme", "{\"a\":1,\"b\":2}", "2024-03-04T10:00:00Z"]`}, got.Groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if len(got.Persons) != 2 {
		t.Errorf("persons: %v", got.Persons)
	}
}

// TestDeliverOnce delivers events again: the same event within a day is one, another name or person is another.
func TestDeliverOnce(t *testing.T) {
	const id = `"uuid":"0190f3c2-aaaa-7abc-8def-000000000001"`
	line := func(name, person, at, set string) string {
		return fmt.Sprintf(`{"event":%q,"distinct_id":%q,"timestamp":%q,%s,"properties":{"$set":{"n":%s}}}`, name, person, at, id, set)
	}
	lines := []string{
		line("paid", "x", "2024-03-04T23:59:59Z", "1"),
		line("paid", "x", "2024-03-04T23:59:59Z", "2"), // again
		line("paid", "x", "2024-03-04T00:00:00Z", "3"), // the same day
		line("paid", "x", "2024-03-05T00:00:01Z", "4"), // slid over midnight
		line("paid", "x", "2024-03-03T23:00:00Z", "5"),
		line("paid", "x", "2024-03-07T00:00:00Z", "6"), // another day
		line("refunded", "y", "2024-03-04T23:59:59Z", "7"),
		line("paid", "z", "2024-03-04T23:59:59Z", "8"),
	}
	c := client(t)
	for _, size := range []int{1, 3, len(lines)} {
		p := project()
		var events, duplicates int
		for batch := range slices.Chunk(captured(t, strings.Join(lines, "\n")), size) {
			report := deliver(t, ingest.New(c), ingest.Options{Project: p}, batch)
			events, duplicates = events+report.Events, duplicates+report.Duplicates
		}
		if events != 8 || duplicates != 4 {
			t.Errorf("batches of %d: %d events, %d duplicates", size, events, duplicates)
		}
		want := []string{`["2024-03-04T23:59:59Z", "paid", "x", 1]`, `["2024-03-04T23:59:59Z", "paid", "z", 8]`, `["2024-03-04T23:59:59Z", "refunded", "y", 7]`, `["2024-03-07T00:00:00Z", "paid", "x", 6]`}
		got := ask(t, c, p, "SELECT timestamp, event, distinct_id, person_properties.n.:Int64 FROM events ORDER BY 1, 2, 3")
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("batches of %d (-want +got):\n%s", size, diff)
		}
	}
}

// broken delivers batches, in parts of some bytes of rows, with a failure before one of the writes, and then again what was not acknowledged, as after a restart of
// the process.
func broken(t *testing.T, c *clickhouse.Client, options ingest.Options, batches [][]record.Record, rows, at, size int) (reached bool) {
	t.Helper()
	intents := &failingIntents{IntentDir: ingest.IntentDir(t.TempDir())}
	steps, failed := 0, errors.New("the process ends")
	step := func() error {
		if steps++; steps == at+1 {
			return failed
		}
		return nil
	}
	i := ingest.New(c)
	i.Rows(rows)
	i.Intents, intents.step = intents, step
	i.Before(func(string) error { return step() })
	var rest []record.Record
	for n, batch := range batches {
		report, err := i.Deliver(t.Context(), options, slices.Clone(batch))
		if errors.Is(err, failed) {
			rest = slices.Concat(batches[n:]...)
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		options.GroupTypes = report.GroupTypes
	}
	if rest == nil {
		return false
	}
	again := ingest.New(c)
	again.Rows(rows)
	again.Intents, intents.step = intents, func() error { return nil }
	for batch := range slices.Chunk(rest, cmp.Or(size, len(rest))) {
		report := deliver(t, again, options, batch)
		options.GroupTypes = report.GroupTypes
	}
	return true
}

type failingIntents struct {
	ingest.IntentDir
	step func() error
}

func (f *failingIntents) Save(ctx context.Context, project int64, batch []byte) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.IntentDir.Save(ctx, project, batch)
}

// TestDeliverBroken ends the process before every write, and delivers the rest again in larger and smaller batches: everything comes out as if nothing had happened.
func TestDeliverBroken(t *testing.T) {
	lines := captured(t, `
		{"event":"read","distinct_id":"anon","properties":{"$process_person_profile":false}}
		{"event":"a","distinct_id":"y","properties":{"$set":{"k":"y","n":1},"$groups":{"org":"o"}}}
		{"event":"a","distinct_id":"x","properties":{"$set_once":{"once":"first"},"$set":{"k":"x"}}}
		{"event":"$groupidentify","distinct_id":"y","properties":{"$group_type":"org","$group_key":"o","$group_set":{"size":1}}}
		{"event":"b","distinct_id":"y","properties":{"$set":{"k":"y2"},"$groups":{"org":"o"}}}
		{"event":"$identify","distinct_id":"x","properties":{"$anon_distinct_id":"y"}}
		{"event":"c","distinct_id":"y","properties":{"$unset":["once"]}}
		{"event":"d","distinct_id":"x","properties":{"$set_once":{"once":"second"},"$groups":{"org":"o","team":"t"}}}
		{"event":"$groupidentify","distinct_id":"x","properties":{"$group_type":"org","$group_key":"o","$group_set":{"size":2}}}
		{"event":"$identify","distinct_id":"user","properties":{"$anon_distinct_id":"anon","$set":{"k":"u"}}}
		{"event":"$merge_dangerously","distinct_id":"user","properties":{"alias":"x"}}
		{"event":"e","distinct_id":"anon","properties":{"$process_person_profile":false}}
		{"event":"f","distinct_id":"y","timestamp":"2023-01-01","properties":{"$set":{"k":"f"}}}
		{"event":"g","distinct_id":"z"}`)
	batches := slices.Collect(slices.Chunk(lines, 7))
	ids := []string{"x", "y", "z", "anon", "user"}
	c := client(t)
	whole := func() state {
		p := project()
		i := ingest.New(c)
		options := ingest.Options{Project: p, Now: now}
		for _, batch := range batches {
			options.GroupTypes = deliver(t, i, options, batch).GroupTypes
		}
		return stateOf(t, c, p, ids...)
	}
	want := whole()
	for rows, step := range map[int]int{0: 1, 600: 5} { // parts have the same writes as batches
		for at := 0; ; at += step {
			p, size := project(), []int{0, 3}[at%2]
			if !broken(t, c, ingest.Options{Project: p, Now: now}, batches, rows, at, size) {
				if at < 10 {
					t.Errorf("there are %d writes only", at)
				}
				break
			}
			// How often a person's row was written depends on where batches end.
			if diff := gocmp.Diff(withoutVersions(want), withoutVersions(stateOf(t, c, p, ids...))); diff != "" {
				t.Errorf("parts of %d bytes, broken off before write %d, then batches of %d (-want +got):\n%s", rows, at, size, diff)
			}
		}
	}
}

// TestDeliverAfterPanic delivers again after a panic in the middle of a batch: nothing is held any more, and nothing is there twice.
func TestDeliverAfterPanic(t *testing.T) {
	c, options := client(t), ingest.Options{Project: project(), Now: now}
	records := captured(t, `
		{"event":"a","distinct_id":"x","properties":{"$set":{"n":1}}}
		{"event":"$identify","distinct_id":"x","properties":{"$anon_distinct_id":"y"}}`)
	i := ingest.New(c)
	i.Intents = ingest.IntentDir(t.TempDir())
	panics := true
	i.Before(func(table string) error {
		if panics && table == "events" {
			panic("a defect")
		}
		return nil
	})
	func() {
		defer func() {
			if cause := recover(); cause != "a defect" {
				t.Errorf("it panics with %v", cause)
			}
		}()
		_, _ = i.Deliver(t.Context(), options, slices.Clone(records))
	}()
	panics = false
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	report, err := i.Deliver(ctx, options, slices.Clone(records))
	if err != nil || report.Events != 2 || report.Duplicates != 2 { // the batch was kept, and is completed first
		t.Errorf("the report: %+v, %v", report, err)
	}
	if diff := gocmp.Diff([]string{`["<x>", "{\"n\":1}", "2024-03-04T10:00:00Z", 1, 0]`}, stateOf(t, c, options.Project, "x").Persons); diff != "" {
		t.Errorf("persons (-want +got):\n%s", diff)
	}
}

func withoutVersions(s state) state {
	cut := func(rows []string) (out []string) {
		for _, row := range rows {
			out = append(out, row[:strings.LastIndex(row, ",")])
		}
		return out
	}
	s.Persons, s.IDs, s.Overrides = cut(s.Persons), cut(s.IDs), cut(s.Overrides)
	return s
}

// TestDeliverPoison delivers an event that ClickHouse refuses: the others are written, and it is reported, even if its batch is completed later. It changes its
// person once.
func TestDeliverPoison(t *testing.T) {
	c := client(t)
	records := captured(t, `
		{"event":"a","distinct_id":"x"}
		{"event":"poison","distinct_id":"x","properties":{"$set":{"n":1}}}
		{"event":"b","distinct_id":"x","properties":{"$set":{"n":2}}}
		{"event":"c","distinct_id":"y"}`)
	want := []ingest.BadLine{{Line: 2, Reason: "ClickHouse rejected the row's data (incorrect_data)"}}
	for _, breaks := range []bool{false, true} {
		options := ingest.Options{Project: project(), Now: now}
		saves, failed := 0, errors.New("the process ends")
		intents := &failingIntents{IntentDir: ingest.IntentDir(t.TempDir()), step: func() error {
			if saves++; breaks && saves == 2 { // when all is written
				return failed
			}
			return nil
		}}
		i := ingest.New(c)
		i.Intents = intents
		i.Poison("poison")
		report, err := i.Deliver(t.Context(), options, slices.Clone(records))
		if breaks {
			if !errors.Is(err, failed) {
				t.Fatalf("got %v", err)
			}
			i = ingest.New(c)
			i.Intents = intents
			i.Poison("poison")
			report, err = i.Deliver(t.Context(), options, slices.Clone(records))
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, report.BadLines); diff != "" || report.Events != 3 {
			t.Errorf("breaks %t: %d events, bad lines (-want +got):\n%s", breaks, report.Events, diff)
		}
		got := stateOf(t, c, options.Project, "x", "y")
		persons := []string{`["<x>", "{\"n\":2}", "2024-03-04T10:00:00Z", 0, 0]`, `["<y>", "{}", "2024-03-04T10:03:00Z", 0, 0]`}
		if diff := gocmp.Diff(persons, got.Persons); diff != "" || len(got.Events) != 3 {
			t.Errorf("breaks %t: %d events, persons (-want +got):\n%s", breaks, len(got.Events), diff)
		}
	}
}

// TestDeliverAfterOthers lets another process merge people, and an import describe one, between the deliveries of an ingester.
func TestDeliverAfterOthers(t *testing.T) {
	c := client(t)
	i, other := ingest.New(c), ingest.New(c)
	options := ingest.Options{Project: project()}
	lines := captured(t, `
		{"event":"a","distinct_id":"x"}
		{"event":"$identify","distinct_id":"user","properties":{"$anon_distinct_id":"x","$set":{"n":1}}}
		{"event":"b","distinct_id":"x"}
		{"event":"c","distinct_id":"x"}`)
	deliver(t, i, options, lines[:1])
	deliver(t, other, options, lines[1:2])
	i.Forget(options.Project)
	deliver(t, i, options, lines[2:3])
	options.Now = now
	if _, err := i.Import(t.Context(), options, ingesttest.Lines(`{"type":"person","distinct_ids":["user"],"properties":{"n":2}}`)); err != nil {
		t.Fatal(err)
	}
	deliver(t, i, options, lines[3:])
	want := []string{`["a", "{}"]`, `["$identify", "{\"n\":1}"]`, `["b", "{\"n\":1}"]`, `["c", "{\"n\":2}"]`}
	got := ask(t, c, options.Project, "SELECT event, toJSONString(person_properties) FROM events ORDER BY timestamp")
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestDeliverRefusedElsewhere lets another server complete the batch of one that was killed. ClickHouse refuses one of its events. The first server delivers it
// again when it is back: it is reported, and does not change its person again.
func TestDeliverRefusedElsewhere(t *testing.T) {
	c := client(t)
	records := captured(t, `
		{"event":"poison","distinct_id":"x","properties":{"$set":{"n":1}}}
		{"event":"b","distinct_id":"x","properties":{"$set":{"n":2}}}
		{"event":"other","distinct_id":"y","properties":{"$set":{"n":3}}}`)
	options := ingest.Options{Project: project(), Now: now}
	failed, killed := errors.New("the process ends"), true
	intents := &failingIntents{IntentDir: ingest.IntentDir(t.TempDir()), step: func() error { return nil }}
	server := func() *ingest.Ingester {
		i := ingest.New(c)
		i.Intents = intents
		i.Poison("poison")
		return i
	}
	first := server()
	first.Before(func(table string) error {
		if killed && table == "events" {
			return failed
		}
		return nil
	})
	if _, err := first.Deliver(t.Context(), options, slices.Clone(records[:2])); !errors.Is(err, failed) {
		t.Fatalf("got %v", err)
	}
	deliver(t, server(), options, records[2:])
	for range 2 { // it may be killed again before it has set the event aside
		report := deliver(t, server(), options, records[:2])
		want := []ingest.BadLine{{Line: 1, Reason: "ClickHouse rejected the row's data (incorrect_data)"}}
		if diff := gocmp.Diff(want, report.BadLines); diff != "" || report.Duplicates != 1 {
			t.Errorf("%d duplicates, bad lines (-want +got):\n%s", report.Duplicates, diff)
		}
	}
	persons := []string{`["<x>", "{\"n\":2}", "2024-03-04T10:00:00Z", 0, 0]`, `["<y>", "{\"n\":3}", "2024-03-04T10:02:00Z", 0, 0]`}
	if diff := gocmp.Diff(persons, stateOf(t, c, options.Project, "x", "y").Persons); diff != "" {
		t.Errorf("persons (-want +got):\n%s", diff)
	}
	i := ingest.New(c) // the cause is gone
	i.Intents = intents
	line := fmt.Sprintf(`{"event":"poison","distinct_id":"x","timestamp":"2024-03-04T10:00:00Z","uuid":%q}`, records[0].UUID)
	report, err := i.Import(t.Context(), options, ingesttest.Lines(line))
	if err != nil || report.Events != 1 || report.Duplicates+report.Bad != 0 {
		t.Errorf("importing the event: %+v, %v", report, err)
	}
	if report := deliver(t, server(), options, records[:2]); report.Duplicates != 2 || report.Bad != 0 {
		t.Errorf("delivering it after the import: %+v", report)
	}
}

// TestDeliverAfterSlowInsert begins to deliver while ClickHouse still executes the insert of a server that is gone: nothing is there twice.
func TestDeliverAfterSlowInsert(t *testing.T) {
	const database = "slow"
	c, admin := clientOf(t, database), embeddedtest.Connect(t, engine.DSN())
	// A part is written when this column is computed.
	if err := admin.Exec(t.Context(), "ALTER TABLE "+database+".events ADD COLUMN slow UInt8 MATERIALIZED sleepEachRow(1)"); err != nil {
		t.Fatal(err)
	}
	records := captured(t, `
		{"event":"a","distinct_id":"x"}
		{"event":"b","distinct_id":"x"}`)
	options := ingest.Options{Project: project(), Now: now}
	var gone sync.WaitGroup
	gone.Go(func() { deliver(t, ingest.New(c), options, records) })
	defer gone.Wait()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var inserts uint64
		if err := admin.QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query LIKE '%INSERT INTO events%' AND query NOT LIKE '%system.processes%'").Scan(&inserts); err != nil {
			t.Fatal(err)
		}
		if inserts > 0 {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal("no insert is executed")
		}
	}
	next, duplicates := ingest.New(c), 0
	for batch := range slices.Chunk(records, 1) { // other blocks than those of the first server
		duplicates += deliver(t, next, options, batch).Duplicates
	}
	if got := ask(t, c, options.Project, "SELECT event FROM events ORDER BY event"); duplicates != 2 || len(got) != 2 {
		t.Errorf("%d duplicates, the events are %v", duplicates, got)
	}
}

// TestDeliverTogether delivers to many projects at once: they share inserts. An event that ClickHouse refuses harms no other project.
func TestDeliverTogether(t *testing.T) {
	const database, projects = "together", 30
	c, admin := clientOf(t, database), embeddedtest.Connect(t, engine.DSN())
	if err := admin.Exec(t.Context(), "ALTER TABLE "+database+".events ADD CONSTRAINT healthy CHECK event != 'poison'"); err != nil {
		t.Fatal(err)
	}
	i := ingest.New(c)
	i.Intents = ingest.IntentDir(t.TempDir())
	ingest.Patient(i) // a busy machine takes longer until all of them wait
	all := func(middle func(n int) string) (ids []int64, reports []ingest.Report) {
		ids, reports = make([]int64, projects), make([]ingest.Report, projects)
		var delivering sync.WaitGroup
		start := make(chan struct{}) // those that are ready first would be delivered alone
		for n := range projects {
			ids[n] = project()
			records := captured(t, fmt.Sprintf(`
				{"event":"a","distinct_id":"x","properties":{"$set":{"n":%d}}}
				{"event":%q,"distinct_id":"x"}
				{"event":"$identify","distinct_id":"user","properties":{"$anon_distinct_id":"x"}}`, n, middle(n)))
			delivering.Go(func() {
				<-start
				var err error
				if reports[n], err = i.Deliver(t.Context(), ingest.Options{Project: ids[n], Now: now}, records); err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		delivering.Wait()
		return ids, reports
	}
	check := func(id int64, n int, events ...string) {
		t.Helper()
		want := []string{fmt.Sprintf(`["<x>", "{\"n\":%d}", "2024-03-04T10:00:00Z", 1, 0]`, n)}
		got := stateOf(t, c, id, "x", "user").Persons
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("persons of project %d (-want +got):\n%s", n, diff)
		}
		if diff := gocmp.Diff(events, ask(t, c, id, "SELECT event FROM events ORDER BY event")); diff != "" {
			t.Errorf("events of project %d (-want +got):\n%s", n, diff)
		}
	}
	ids, _ := all(func(int) string { return "b" })
	for n, id := range ids {
		check(id, n, `["$identify"]`, `["a"]`, `["b"]`)
	}
	var inserted int64
	if err := admin.QueryRow(t.Context(), "SELECT max(max_block_number) FROM system.parts WHERE database = '"+database+"' AND table = 'events'").Scan(&inserted); err != nil {
		t.Fatal(err)
	}
	if inserted > projects/2 {
		t.Errorf("the events of %d projects took %d inserts", projects, inserted)
	}
	ids, reports := all(func(n int) string {
		if n == 7 {
			return "poison"
		}
		return "b"
	})
	for n, id := range ids {
		if n != 7 {
			check(id, n, `["$identify"]`, `["a"]`, `["b"]`)
			continue
		}
		check(id, n, `["$identify"]`, `["a"]`)
		want := []ingest.BadLine{{Line: 2, Reason: "ClickHouse rejected the row's data (violated_constraint)"}}
		if diff := gocmp.Diff(want, reports[n].BadLines); diff != "" {
			t.Errorf("bad lines (-want +got):\n%s", diff)
		}
	}
}

// clientOf opens a client on a new database of the shared engine.
func clientOf(t *testing.T, database string) *clickhouse.Client {
	t.Helper()
	if err := embeddedtest.Connect(t, engine.DSN()).Exec(t.Context(), "CREATE DATABASE "+database); err != nil {
		t.Fatal(err)
	}
	dsn, err := url.Parse(engine.DSN())
	if err != nil {
		t.Fatal(err)
	}
	dsn.Path = "/" + database
	c := clickhousetest.Open(t, clickhouse.Config{DSN: dsn.String()})
	if err := c.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAwaitBatch: it returns when a batch that is being delivered is written, not before, and gives up when its context ends.
func TestAwaitBatch(t *testing.T) {
	c := client(t)
	i, options := ingest.New(c), ingest.Options{Project: project(), Now: now}
	began, proceed, delivered := make(chan bool), make(chan bool), make(chan error, 1)
	options.Turn = func(context.Context) (func(), error) {
		close(began)
		<-proceed
		return func() {}, nil
	}
	go func() {
		_, err := i.Deliver(context.WithoutCancel(t.Context()), options, captured(t, `{"event":"a","distinct_id":"x"}`))
		delivered <- err
	}()
	select {
	case <-began:
	case err := <-delivered:
		t.Fatalf("delivering an event: %v", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := i.AwaitBatch(soon, ingest.Options{Project: options.Project}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while a batch is being delivered: %v, want that the deadline is exceeded", err)
	}
	close(proceed)
	if err := i.AwaitBatch(t.Context(), ingest.Options{Project: options.Project}); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, c, options.Project, "SELECT count() FROM events"); !slices.Equal(got, []string{"[1]"}) {
		t.Errorf("after the batch there are %v events", got)
	}
	if err := <-delivered; err != nil {
		t.Error(err)
	}
}

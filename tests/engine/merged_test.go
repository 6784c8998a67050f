package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// TestMergedPeople asks every kind of insight about people who came as several, partly without profile, and became one later. The answers
// are those for people who had one distinct id from the start.
func TestMergedPeople(t *testing.T) {
	const split, whole = 9401, 9402
	events := []struct{ id, name, at, properties string }{
		{"anon", "read", "2024-03-04T10:00:00Z", `{"$process_person_profile":false,"$current_url":"/a"}`},
		{"phone", "start", "2024-03-04T10:10:00Z", `{"$current_url":"/b"}`},
		{"anon", "read", "2024-03-05T10:00:00Z", `{"$process_person_profile":false,"$current_url":"/c"}`},
		{"user", "$identify", "2024-03-06T10:00:00Z", `{"$anon_distinct_id":"anon"}`},
		{"laptop", "$identify", "2024-03-06T11:00:00Z", `{"$anon_distinct_id":"phone"}`},
		{"user", "finish", "2024-03-07T10:00:00Z", `{"$current_url":"/d"}`},
		{"laptop", "$merge_dangerously", "2024-03-07T11:00:00Z", `{"alias":"user"}`},
	}
	i := ingest.New(client)
	for n, e := range events {
		for _, project := range []int64{split, whole} {
			id, properties := e.id, e.properties
			if project == whole {
				id, properties = "one", strings.Replace(properties, `"$process_person_profile":false,`, "", 1)
			}
			line := fmt.Sprintf(`{"event":%q,"distinct_id":%q,"timestamp":%q,"properties":%s,"uuid":%q}`,
				e.name, id, e.at, properties, uuid.NewSHA1(uuid.Nil, fmt.Append(nil, n)))
			r, err := new(record.Parser).Parse([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			if report, err := i.Deliver(t.Context(), ingest.Options{Project: project, Now: time.Now()}, []record.Record{r}); err != nil || report.Bad > 0 {
				t.Fatalf("delivering: %v: %+v", err, report)
			}
		}
	}
	const (
		dates = `"dateRange":{"date_from":"2024-03-03","date_to":"2024-03-09"}`
		read  = `{"kind":"EventsNode","event":"read"}`
		all   = `{"kind":"EventsNode","event":null,"math":"dau"}`
	)
	for _, mode := range []string{"", "disabled", "person_id_override_properties_on_events", "person_id_override_properties_joined"} {
		modifiers := ""
		if mode != "" {
			modifiers = fmt.Sprintf(`,"modifiers":{"personsOnEventsMode":%q}`, mode)
		}
		for name, query := range map[string]string{
			"trends":            `{"kind":"TrendsQuery",` + dates + `,"series":[` + all + `]`,
			"trends total":      `{"kind":"TrendsQuery",` + dates + `,"series":[` + all + `],"trendsFilter":{"display":"BoldNumber"}`,
			"weekly active":     `{"kind":"TrendsQuery",` + dates + `,"series":[{"kind":"EventsNode","event":null,"math":"weekly_active"}]`,
			"funnel":            `{"kind":"FunnelsQuery",` + dates + `,"series":[` + read + `,{"kind":"EventsNode","event":"start"},{"kind":"EventsNode","event":"finish"}]`,
			"retention":         `{"kind":"RetentionQuery",` + dates + `,"retentionFilter":{"period":"Day","totalIntervals":5,"targetEntity":{"id":"read","type":"events"},"returningEntity":{"id":"finish","type":"events"}}`,
			"stickiness":        `{"kind":"StickinessQuery",` + dates + `,"series":[{"kind":"EventsNode","event":null}]`,
			"lifecycle":         `{"kind":"LifecycleQuery",` + dates + `,"series":[{"kind":"EventsNode","event":"finish"}]`, // it leaves out events without profile
			"paths":             `{"kind":"PathsQuery",` + dates + `,"pathsFilter":{"includeEventTypes":["custom_event"]}`,
			"people per event":  `{"kind":"HogQLQuery","query":"select event, count(distinct person_id), count() from events group by event order by event"`,
			"people":            `{"kind":"HogQLQuery","query":"select count(distinct person_id), count(distinct person.id), (select count() from persons) from events"`,
			"events of persons": `{"kind":"HogQLQuery","query":"select count() from events e join persons p on p.id = e.person_id"`,
		} {
			answer := func(project int) string {
				compiled, err := compileFunnel([]byte(query+modifiers+"}"), project, time.UTC)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				rows, err := rowsOfFunnel(t, compiled, project)
				if err != nil {
					t.Fatalf("%s %s: %v\n%s", name, mode, err, compiled.SQL)
				}
				if compiled.Shape == nil {
					return strings.Join(rows, "\n")
				}
				answer, err := compiled.Shape(rows.all)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				return string(answer.Results)
			}
			got, want := answer(split), answer(whole)
			if got != want || !strings.ContainsAny(want, "1234567") {
				t.Errorf("%s %s\ngot  %s\nwant %s", name, mode, got, want)
			}
		}
	}
}

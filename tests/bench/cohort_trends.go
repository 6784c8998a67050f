package main

import (
	"context"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// The dynamic cohort of the generated projects.
const (
	benchCohort  = 1
	benchVersion = 7
)

// benchCohorts are the cohorts of the generated project.
var benchCohorts = schema.NewCohorts([]schema.Cohort{{ID: benchCohort, Name: "bench", Version: benchVersion}}, false)

// fillCohort writes the members of the cohort, and those of an older version that is no longer read.
func fillCohort(ctx context.Context, client *clickhouse.Client) error {
	for version, event := range map[uint64]string{benchVersion: "event_20", benchVersion - 1: "event_10"} {
		if _, err := client.DropVersion(ctx, benchProject, benchCohort, version); err != nil { // of an earlier run
			return err
		}
		if err := client.Fill(ctx, clickhouse.Fill{
			Query: clickhouse.Query{SQL: "SELECT DISTINCT person_id FROM events WHERE event = '" + event + "'", Project: benchProject},
			Table: physical.ComputedMembers, Columns: []string{"person_id"},
			Fixed: []clickhouse.FixedColumn{{Name: "cohort_id", Number: benchCohort}, {Name: "version", Number: version}, {Name: "sign", Number: 1}},
		}); err != nil {
			return fmt.Errorf("computing a cohort: %w", err)
		}
	}
	return nil
}

// cohortTrends returns contests between trends of a cohort's members and a subquery of the members.
func cohortTrends(within, merged string) []*contest {
	const (
		ninety  = `"dateRange": {"date_from": "2024-03-31", "date_to": "2024-06-28"}`
		filter  = `"properties": [{"type": "cohort", "key": "id", "value": 1}]`
		members = "(SELECT person_id FROM cohortpeople WHERE team_id = 1 AND cohort_id = 1 AND version = 7)"
	)
	of := func(what string) string {
		return "SELECT toDate(timestamp) AS day, " + what + " FROM (SELECT timestamp, distinct_id, person_id FROM events WHERE team_id = 1 AND event = '$pageview' AND " +
			within + ") AS e " + merged + " WHERE if(notEmpty(o.person_id), o.person_id, e.person_id) IN " + members + " GROUP BY day"
	}
	return []*contest{
		{
			name: "trend of a cohort's members, 90 days", goal: 1.3, hand: of("count()"),
			node: `{"kind": "TrendsQuery", ` + ninety + `, ` + filter + `, "series": [{"kind": "EventsNode", "event": "$pageview"}]}`,
		},
		{
			name: "the same, unique people", goal: 1.3, hand: of("uniqExact(if(notEmpty(o.person_id), o.person_id, e.person_id))"),
			node: `{"kind": "TrendsQuery", ` + ninety + `, ` + filter + `, "series": [{"kind": "EventsNode", "event": "$pageview", "math": "dau"}]}`,
		},
	}
}

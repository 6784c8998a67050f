package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// object is a JSON object.
type object = map[string]any

// saved returns the insights of the demo, one of each kind.
func saved() []object {
	insight := func(name, description string, source object) object {
		return object{"name": name, "description": description, "tags": []string{"demo"}, "query": object{"kind": "InsightVizNode", "source": source}}
	}
	const authored, merged, tagged = "commit authored", "pull request merged", "release tagged"
	event := func(name string) object { return object{"kind": "EventsNode", "event": name} }
	year := object{"date_from": "2023-01-01", "date_to": "2023-12-31"}
	return []object{
		insight("Commits and fixes", "Commits per month in 2023, fixes separately", object{
			"kind": "TrendsQuery", "dateRange": year, "interval": "month", "series": []object{event(authored)},
			"breakdownFilter": object{"breakdown": "is_fix", "breakdown_type": "event"},
		}),
		insight("From a commit to a release", "People who had a commit merged and then tagged a release, all within four weeks", object{
			"kind": "FunnelsQuery", "dateRange": year, "series": []object{event(authored), event(merged), event(tagged)},
			"funnelsFilter": object{"funnelWindowInterval": 28, "funnelWindowIntervalUnit": "day"},
		}),
		insight("Authors who come back", "Of the people who first committed in each month of 2023, how many committed again later", object{
			"kind": "RetentionQuery", "dateRange": year,
			"retentionFilter": object{
				"period": "Month", "totalIntervals": 12, "retentionType": "retention_first_time",
				"targetEntity":    object{"id": authored, "name": authored, "type": "events"},
				"returningEntity": object{"id": authored, "name": authored, "type": "events"},
			},
		}),
		insight("What follows what", "The paths from one kind of work to the next in 2023", object{
			"kind": "PathsQuery", "dateRange": year, "pathsFilter": object{"includeEventTypes": []string{"custom_event"}, "edgeLimit": 20},
		}),
		insight("Months with a commit", "In how many months of 2023 authors committed", object{
			"kind": "StickinessQuery", "dateRange": year, "interval": "month", "series": []object{event(authored)},
		}),
		insight("New and returning authors", "Authors of each month of 2023: new, returning, resurrecting and dormant", object{
			"kind": "LifecycleQuery", "dateRange": year, "interval": "month", "series": []object{event(authored)},
		}),
		{
			"name": "Releases per year", "description": "Counted in SQL", "tags": []string{"demo"},
			"query": object{"kind": "DataVisualizationNode", "source": object{
				"kind": "HogQLQuery", "query": "select toYear(timestamp) as year, count() as releases from events where event = 'release tagged' group by year order by year",
			}},
		},
	}
}

// dashboardName is the name of the dashboard that holds the insights.
const dashboardName = "How the project is made"

// saveInsights saves the insights and a dashboard with all of them, skipping those that an interrupted run already saved.
func (d *demo) saveInsights(ctx context.Context) error {
	there, err := d.names(ctx, "insights/?basic=true")
	if err != nil {
		return err
	}
	for _, insight := range saved() {
		if _, done := there[insight["name"].(string)]; done {
			continue
		}
		if err := d.post(ctx, "insights/", insight); err != nil {
			return err
		}
	}
	boards, err := d.names(ctx, "dashboards/")
	if err != nil || boards[dashboardName] != 0 {
		return err
	}
	if there, err = d.names(ctx, "insights/?basic=true"); err != nil {
		return err
	}
	var tiles []object
	for i, insight := range saved() {
		place := object{"x": 6 * (i % 2), "y": 5 * (i / 2), "w": 6, "h": 5}
		tiles = append(tiles, object{"insight": there[insight["name"].(string)], "layouts": object{"sm": place}})
	}
	return d.post(ctx, "dashboards/", object{"name": dashboardName, "pinned": true, "tiles": tiles})
}

// names returns the ids of the items of a list route by name.
func (d *demo) names(ctx context.Context, path string) (map[string]int64, error) {
	status, answer, err := d.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("listing %s: %d: %s", path, status, answer)
	}
	var list struct {
		Results []struct {
			ID   int64  `json:"id"`
			Name string `json:"name"`
		} `json:"results"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, fmt.Errorf("listing %s: %w", path, err)
	}
	found := make(map[string]int64, len(list.Results))
	for _, item := range list.Results {
		found[item.Name] = item.ID
	}
	return found, nil
}

package webstats_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/webstats"
)

func node(t *testing.T, fields string) *webstats.Query {
	t.Helper()
	return insighttest.Node[*webstats.Query](t, `{"kind": "WebStatsTableQuery", "properties": []`+fields+`}`)
}

func shape(t *testing.T, fields string, rows ...string) *insight.Answer {
	t.Helper()
	built, err := webstats.Build(node(t, fields), insighttest.World())
	if err != nil {
		t.Fatal(err)
	}
	return insighttest.Shape(t, built, rows...)
}

func TestRows(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, fields string
		rows         []string
		want         string
		columns      []string
		more         bool
	}{
		{
			"pages", `, "breakdownBy": "Page"`,
			[]string{`["/", 2, null, 3, null, 0.75, null]`},
			`[["/", [2, null], [3, null], 0.75, ""]]`,
			[]string{"breakdown_value", "visitors", "views", "ui_fill_fraction", "cross_sell"},
			false,
		},
		{
			"one more than the limit", `, "breakdownBy": "City", "limit": 1`,
			[]string{`[["DE", "Ulm"], 2, null, 3, null, 1, null]`, `[["DE", "Ulm"], 2, null, 3, null, 1, null]`},
			`[[["DE", "Ulm"], [2, null], [3, null], 1, ""]]`,
			[]string{"breakdown_value", "visitors", "views", "ui_fill_fraction", "cross_sell"},
			true,
		},
		{
			"a goal, of half of the people", `, "breakdownBy": "OS", "samplingFactor": 0.5, "conversionGoal": {"customEventName": "e"}, "compareFilter": {"compare": true}`,
			[]string{`["Mac", 4, 0, 3, 0, 1, 0, 0.25, null, null, null]`},
			`[["Mac", [8, 0], [6, 0], [2, 0], [0.25, null], null, ""]]`,
			[]string{"breakdown_value", "visitors", "total_conversions", "unique_conversions", "conversion_rate", "ui_fill_fraction", "cross_sell"},
			false,
		},
		{
			"no rows, with how far pages were scrolled", `, "breakdownBy": "Page", "includeBounceRate": true, "includeScrollDepth": true`, nil, `[]`,
			[]string{"breakdown_value", "visitors", "views", "bounce_rate", "average_scroll_percentage", "scroll_gt80_percentage", "ui_fill_fraction", "cross_sell"},
			false,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answer := shape(t, tt.fields, tt.rows...)
			if diff := cmp.Diff(insighttest.JSON(t, tt.want), insighttest.JSON(t, string(answer.Results))); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			columns := make([]string, len(tt.columns))
			for i, name := range tt.columns {
				columns[i] = "context.columns." + name
			}
			if diff := cmp.Diff(columns, answer.Columns); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
			if len(answer.Types) != len(columns)-1 {
				t.Errorf("%d columns have the types %v", len(columns), answer.Types)
			}
			if *answer.HasMore != tt.more {
				t.Errorf("has more: %t, want %t", *answer.HasMore, tt.more)
			}
		})
	}
}

// TestSample checks that counts of a sample are whole numbers, of any size.
func TestSample(t *testing.T) {
	t.Parallel()
	answer := shape(t, `, "breakdownBy": "OS", "samplingFactor": 0.3`, `["Mac", 4, 1, 600000, null, null, null]`)
	if diff := cmp.Diff(`[["Mac",[13,3],[2000000,null],null,""]]`, string(answer.Results)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestForeignRows checks that rows that cannot be from the query are an error, not an answer.
func TestForeignRows(t *testing.T) {
	t.Parallel()
	built, err := webstats.Build(node(t, `, "breakdownBy": "Page", "samplingFactor": 0.5`), insighttest.World())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{`["/", 1]`, `{}`, `["/", 1, null, 1, null, 1, "x"]`, `["/", "x", null, 1, null, 1, null]`} {
		if answer, err := built.Shape(slices.Values([][]byte{[]byte(row)})); err == nil {
			t.Errorf("row %s gives %s", row, answer.Results)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	const rows = `[["/", [2, 1], [3, null], 0.75, ""], [["DE", "Ulm"], [1, null], [1, null], null, ""]]`
	for fields, want := range map[string][][]string{
		`, "breakdownBy": "Page"`: {{"Page", "visitors", "views"}, {"/", "2", "3"}, {`["DE","Ulm"]`, "1", "1"}},
		`, "breakdownBy": "Page", "compareFilter": {"compare": true}`: {
			{"Page", "visitors", "visitors_before", "views", "views_before"}, {"/", "2", "1", "3", "null"}, {`["DE","Ulm"]`, "1", "null", "1", "null"},
		},
	} {
		got, err := webstats.Table(node(t, fields), []byte(rows))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: table (-want +got):\n%s", fields, diff)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	node := func(fields string) string { return `{"kind": "WebStatsTableQuery", "properties": []` + fields + `}` }
	tests := []struct{ name, in, attr, want string }{
		{"no breakdown", node(``), "breakdownBy", "query.WebStatsTableQuery.breakdownBy\n  Field required [type=missing]"},
		{"an unknown breakdown", node(`, "breakdownBy": "Pages"`), "breakdownBy", "query.WebStatsTableQuery.breakdownBy\n  Input should be 'Browser', 'City'"},
		{
			"a negative limit", node(`, "breakdownBy": "Page", "limit": -1`), "limit",
			"query.WebStatsTableQuery.limit\n  Input should be greater than or equal to 0 [type=greater_than_equal]",
		},
		{
			"the time on a page", node(`, "breakdownBy": "Page", "includeAvgTimeOnPage": true`), "includeAvgTimeOnPage",
			"query.WebStatsTableQuery.includeAvgTimeOnPage\n  The average time on a page is not supported [type=value_error]",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			insighttest.CheckMistake(t, tt.in, tt.attr, tt.want)
		})
	}
}

// TestOrders checks how rows are ordered.
func TestOrders(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]string{
		``:                                   "visitors DESC, visitors_before DESC, views DESC, views_before DESC, value",
		`, "orderBy": ["Views"]`:             "views DESC, views_before DESC, visitors DESC, visitors_before DESC, value",
		`, "orderBy": ["Views", "ASC"]`:      "views, views_before, visitors, visitors_before, value",
		`, "orderBy": ["BounceRate", "ASC"]`: "visitors, visitors_before, views, views_before, value",
		`, "includeBounceRate": true, "orderBy": ["BounceRate", "DESC"]`: "bounce_rate DESC, bounce_rate_before DESC, " +
			"visitors DESC, visitors_before DESC, views DESC, views_before DESC, value",
		`, "conversionGoal": {"customEventName": "e"}`: "unique_conversions DESC, unique_conversions_before DESC, " +
			"total_conversions DESC, total_conversions_before DESC, visitors DESC, visitors_before DESC, value",
	} {
		built, err := webstats.Build(node(t, `, "breakdownBy": "OS"`+fields), insighttest.World())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, orderOf(built)); diff != "" {
			t.Errorf("%s: order (-want +got):\n%s", fields, diff)
		}
	}
}

func orderOf(built *insight.Built) string {
	_, order, _ := strings.Cut(hogql.Print(built.Query), " ORDER BY ")
	order, _, _ = strings.Cut(order, " LIMIT ")
	return order
}

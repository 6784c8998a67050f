package stickiness_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/stickiness"
)

func build(t *testing.T, node string) (*insight.Built, error) {
	t.Helper()
	return stickiness.Build(insighttest.Node[*stickiness.Query](t, node), insighttest.World())
}

func shape(t *testing.T, node string, rows ...string) *insight.Answer {
	t.Helper()
	built, err := build(t, node)
	if err != nil {
		t.Fatal(err)
	}
	return insighttest.Shape(t, built, rows...)
}

func TestItems(t *testing.T) {
	t.Parallel()
	const (
		from = `"dateRange": {"date_from": "2020-01-01", "date_to": "2020-01-03"}`
		days = `"days": [1, 2, 3], "labels": ["1 day", "2 days", "3 days"]`
		more = `"days": [1, 2, 3], "labels": ["1 day or more", "2 days or more", "3 days or more"]`
	)
	tests := []struct {
		name, fields string
		rows         []string
		want         string
	}{
		{
			"series in their order, with names of their own", `"series": [{"event": "a", "custom_name": "A!"}, {"event": null}], ` + from,
			[]string{`[1, 2, 5]`, `[0, 3, 1]`, `[0, 1, 4]`},
			`[{"action": {"order": 0, "type": "events", "name": "a", "id": "a", "custom_name": "A!"}, "label": "a", "count": 5, "data": [4, 0, 1], ` + days + `},
			{"action": {"order": 1, "type": "events", "name": "All events", "id": null, "custom_name": null}, "label": "All events", "count": 5, "data": [0, 5, 0], ` + days + `}]`,
		},
		{
			"cumulative, with the count of the plain numbers", `"series": [{"event": "a"}], "stickinessFilter": {"computedAs": "cumulative"}, ` + from,
			[]string{`[0, 1, 4]`, `[0, 3, 1]`},
			`[{"action": {"order": 0, "type": "events", "name": "a", "id": "a", "custom_name": null}, "label": "a", "count": 5, "data": [5, 1, 1], ` + more + `}]`,
		},
		{
			"no events, cumulative", `"series": [{"event": "a"}], "stickinessFilter": {"computedAs": "cumulative"}, ` + from, nil,
			`[{"action": {"order": 0, "type": "events", "name": "a", "id": "a", "custom_name": null}, "label": "a", "count": 0, "data": [0, 0, 0], ` + more + `}]`,
		},
		{
			"blocks of two days: half of the entries, with plain labels", `"series": [{"event": "a"}], "intervalCount": 2, ` + from,
			[]string{`[0, 2, 1]`},
			`[{"action": {"order": 0, "type": "events", "name": "a", "id": "a", "custom_name": null}, "label": "a", "count": 1, "data": [0, 1],
			"days": [1, 2], "labels": ["1 day", "2 days"]}]`,
		},
		{
			"compared months, each with entries of its own", `"series": [{"event": "a"}], "interval": "month", "compareFilter": {"compare": true, "compare_to": "-1m"},
			"dateRange": {"date_from": "2020-03-02", "date_to": "2020-04-01"}`,
			[]string{`[0, 1, 4]`, `[1, 1, 3]`},
			`[{"action": {"order": 0, "type": "events", "name": "a", "id": "a", "custom_name": null}, "label": "a", "count": 4, "data": [4, 0], "days": [1, 2],
			"labels": ["1 month", "2 months"], "compare": true, "compare_label": "current"},
			{"action": {"order": 0, "type": "events", "name": "a", "id": "a", "custom_name": null}, "label": "a", "count": 3, "data": [3, 0], "days": [1, 2],
			"labels": ["1 month", "2 months"], "compare": true, "compare_label": "previous"}]`,
		},
		{
			"all time, not compared with the time before", `"series": [{"event": "a"}], "interval": "week", "compareFilter": {"compare": true}, "dateRange": {"date_from": "all"}`,
			[]string{`[-1, 1577890800, 0]`, `[0, 2, 7]`},
			`[{"action": {"order": 0, "type": "events", "name": "a", "id": "a", "custom_name": null}, "label": "a", "count": 7, "data": [0, 7], "days": [1, 2], "labels": ["1 week", "2 weeks"]}]`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answer := shape(t, `{"kind": "StickinessQuery", `+tt.fields+`}`, tt.rows...)
			if diff := cmp.Diff(insighttest.JSON(t, tt.want), insighttest.JSON(t, string(answer.Results))); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPreviousRange(t *testing.T) {
	t.Parallel()
	answer := shape(t, `{"kind": "StickinessQuery", "series": [{"event": "a"}], "compareFilter": {"compare": true},
		"dateRange": {"date_from": "2020-01-11", "date_to": "2020-01-20"}}`)
	want := &insight.Span{
		From: time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2020, time.January, 10, 23, 59, 59, 999_999_000, time.UTC),
	}
	if diff := cmp.Diff(want, answer.Previous); diff != "" {
		t.Errorf("previous range (-want +got):\n%s", diff)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fields, want string }{
		{"no series", `"series": []`, "series: Stickiness insights require at least one series."},
		{"a name of nothing", `"series": [{"math": "hogql", "math_hogql": "e.event || hits"}]`, "series.0.math_hogql: Unable to resolve field: hits"},
		{
			"a criterion that nothing meets", `"series": [{}], "stickinessFilter": {"stickinessCriteria": {"operator": "lte", "value": 0}}`,
			"stickinessFilter.stickinessCriteria.value: Stickiness criteria with operator exact or lte must use a value greater than 0.",
		},
		{"no interval at all", `"series": [{}], "intervalCount": 0`, "intervalCount: intervalCount must be a positive integer."},
		{"too long a block", `"series": [{}], "intervalCount": 366`, "intervalCount: intervalCount cannot exceed 365."},
		{
			"a negative criterion", `"series": [{}], "stickinessFilter": {"stickinessCriteria": {"operator": "gte", "value": -1}}`,
			"stickinessFilter.stickinessCriteria.value: Stickiness criteria value must be non-negative.",
		},
		{"a bad date", `"series": [{}], "dateRange": {"date_from": "2020-13-01"}`, "dateRange.date_from: The date '2020-13-01' is neither ISO 8601 nor relative, such as -7d"},
		{
			"nothing to compare with", `"series": [{}], "compareFilter": {"compare": true, "compare_to": "then"}`,
			"compareFilter.compare_to: compare_to 'then' is not a relative date (want, for example, -1w)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := build(t, `{"kind": "StickinessQuery", `+tt.fields+`}`)
			if got := insighttest.Mistake(t, err); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	_, err := build(t, `{"kind": "StickinessQuery", "series": [{"math": "hogql", "math_hogql": "e.properties."}]}`)
	if got := insighttest.Mistake(t, err); !strings.HasPrefix(got, "series.0.math_hogql: ") {
		t.Errorf("got %s, want a mistake in series.0.math_hogql", got)
	}
}

// TestCodes checks the codes of mistakes that have one of their own.
func TestCodes(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]diag.Code{
		`"series": []`: "insight_requires_at_least_one_series",
		`"series": [{}], "stickinessFilter": {"stickinessCriteria": {"operator": "exact", "value": 0}}`: "stickiness_criteria_zero_incompatible",
		`"series": [{}], "stickinessFilter": {"stickinessCriteria": {"operator": "gte", "value": -1}}`:  "stickiness_criteria_negative",
		`"series": [{}], "intervalCount": 0`:   "stickiness_interval_count_non_positive",
		`"series": [{}], "intervalCount": 366`: "stickiness_interval_count_too_large",
	} {
		_, err := build(t, `{"kind": "StickinessQuery", `+fields+`}`)
		if mistake, ok := errors.AsType[*diag.Error](err); !ok || mistake.Code != want {
			t.Errorf("got %v, want a mistake with the code %s", err, want)
		}
	}
	if _, err := build(t, `{"kind": "StickinessQuery", "series": [{}], "stickinessFilter": {"stickinessCriteria": {"operator": "gte", "value": 0}}}`); err != nil {
		t.Error(err)
	}
}

// TestMathsWithoutTheirField checks that a math counts people if the type of groups or the expression that it needs is missing.
func TestMathsWithoutTheirField(t *testing.T) {
	t.Parallel()
	texts := func(math string) []string {
		t.Helper()
		node := `{"kind": "StickinessQuery", "series": [{"event": "a", ` + math + `}]}`
		built, err := build(t, node)
		if err != nil {
			t.Fatal(err)
		}
		at := insighttest.Node[*stickiness.ActorsQuery](t, `{"kind": "StickinessActorsQuery", "day": 2, "source": `+node+`}`)
		people, err := stickiness.Actors(at.Source, at, insighttest.World())
		if err != nil {
			t.Fatal(err)
		}
		if people.Group != nil {
			t.Errorf("with %s, the actors are groups of type %d", math, *people.Group)
		}
		return []string{hogql.Print(built.Query), hogql.Print(people.Query)}
	}
	for _, math := range []string{`"math": "unique_group"`, `"math": "hogql"`, `"math": "hogql", "math_hogql": " "`} {
		if diff := cmp.Diff(texts(`"math": "dau"`), texts(math)); diff != "" {
			t.Errorf("%s (-people +it):\n%s", math, diff)
		}
	}
}

// TestForeignRows checks that rows that cannot be from the query are an error, not an answer.
func TestForeignRows(t *testing.T) {
	t.Parallel()
	built, err := build(t, `{"kind": "StickinessQuery", "series": [{}]}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{`[1, 1, 1]`, `[-2, 1, 1]`, `[0, "x", 1]`, `7`} {
		if answer, err := built.Shape(slices.Values([][]byte{[]byte(row)})); err == nil {
			t.Errorf("row %s gives %s", row, answer.Results)
		}
	}
}

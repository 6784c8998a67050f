package query

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// CohortType is the type of breakdowns and property filters on cohorts.
const CohortType = "cohort"

// maxCohorts bounds the cohorts of a breakdown: for each, ClickHouse builds a set of people.
const maxCohorts = 50

// cohorts reads the cohorts of a breakdown, by id; "all" and 0 mean everybody. Duplicates count once.
func (r *Reader) cohorts(items []any, at Place, list bool) []Cohort {
	if len(items) > maxCohorts {
		r.Add(at, "too_long", fmt.Sprintf("List should have at most %d items after validation, not %d", maxCohorts, len(items)))
		return nil
	}
	var out []Cohort
	for i, item := range items {
		field := at
		if list {
			field = at.Below(strconv.Itoa(i), true)
		}
		var text string
		switch item := item.(type) {
		case string:
			text = item
		case json.Number:
			text = item.String()
		}
		id, err := strconv.ParseInt(text, 10, 64)
		if text == "all" {
			id, err = schema.Everybody, nil
		}
		switch {
		case err != nil || id < 0:
			r.Add(field, "int_parsing", "Input should be the id of a cohort or 'all'")
		case !slices.ContainsFunc(out, func(c Cohort) bool { return c.ID == id }):
			out = append(out, Cohort{At: field.Attr, ID: id})
		}
	}
	return out
}

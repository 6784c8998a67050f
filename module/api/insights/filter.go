package insights

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/internal/trigram"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// The similarity from which a description that does not contain the search counts as similar. Descriptions are prose, in which something similar to a short
// word is always found, so they need more than names, and also count for less.
const (
	descriptionSimilarity = 0.4
	descriptionWeight     = 0.5
)

// sameName is the score of a name that equals the search, above all similarities.
const sameName = 2

// search keeps the rows whose names, description or tags contain the search, or whose names or description are similar to it.
func search(ctx context.Context, in *api.Input, rows []insightRow) ([]insightRow, error) {
	text, err := api.SearchText(in)
	if err != nil || text == "" {
		return rows, err
	}
	term := trigram.New(text)
	found := rows[:0]
	for _, row := range rows {
		if ctx.Err() != nil { // long descriptions take a while
			return nil, fmt.Errorf("searching insights: %w", context.Cause(ctx))
		}
		name, derived, description := api.Deref(row.Name), api.Deref(row.DerivedName), api.Deref(row.Description)
		inName := max(term.Similarity(name), term.Similarity(derived))
		inDescription := term.Similarity(description)
		row.score = max(inName, descriptionWeight*inDescription)
		if strings.EqualFold(name, text) || strings.EqualFold(derived, text) {
			row.score = sameName
		}
		switch {
		case trigram.Contains(text, append([]string{name, derived, description}, row.Tags...)...):
			row.match = "exact"
		case inName >= api.NameSimilarity || inDescription >= descriptionSimilarity:
			row.match = "similar"
		default:
			continue
		}
		found = append(found, row)
	}
	return found, nil
}

// rowFilter reports whether a row stays in a list.
type rowFilter func(row *insightRow) bool

// applyFilters keeps the rows that pass all filters of the query string. The error is a mistake of the request, or that of ctx.
func applyFilters(ctx context.Context, c *api.Caller, in *api.Input, rows []insightRow) ([]insightRow, error) {
	var wanted []rowFilter
	for name := range in.URL.Query() {
		build, ok := filters[name]
		if !ok {
			continue
		}
		filter, err := build(c, in, name)
		if err != nil {
			return nil, err
		}
		if filter != nil {
			wanted = append(wanted, filter)
		}
	}
	rows = slices.DeleteFunc(rows, func(row insightRow) bool {
		return ctx.Err() != nil || slices.ContainsFunc(wanted, func(f rowFilter) bool { return !f(&row) }) // large queries take a while
	})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("filtering insights: %w", context.Cause(ctx))
	}
	return rows, nil
}

// filters are the filters of contract api.md section 4.2 by parameter. Each function makes a filter from the parameter's value, or nil if the value selects
// everything.
var filters = map[string]func(c *api.Caller, in *api.Input, name string) (rowFilter, error){
	"short_id": valueFilter(func(_ *api.Caller, id string) rowFilter {
		if id == "" {
			return nil
		}
		return func(row *insightRow) bool { return row.ShortID == id }
	}),
	"saved":      valueFilter(savedFilter),
	"created_by": listFilter(authorFilter),
	"user": valueFilter(func(c *api.Caller, _ string) rowFilter {
		return func(row *insightRow) bool { return row.CreatedBy == c.Key.ID }
	}),
	"favorited": valueFilter(func(*api.Caller, string) rowFilter {
		return func(row *insightRow) bool { return row.Favorited }
	}),
	"tags":                       listFilter(tagFilter),
	"dashboards":                 listFilter(dashboardFilter),
	"insight":                    valueFilter(kindFilter),
	"events":                     listFilter(eventFilter),
	"feature_flag":               valueFilter(flagFilter),
	"hide_feature_flag_insights": valueFilter(hideFlagsFilter),
	"date_from":                  dateFilter,
	"date_to":                    dateFilter,
	"created_date_from":          dateFilter,
	"created_date_to":            dateFilter,
	"last_viewed_date_from":      dateFilter,
	"last_viewed_date_to":        dateFilter,
}

// valueFilter makes a filter from the text of its parameter.
func valueFilter(build func(*api.Caller, string) rowFilter) func(*api.Caller, *api.Input, string) (rowFilter, error) {
	return func(c *api.Caller, in *api.Input, name string) (rowFilter, error) {
		return build(c, in.URL.Query().Get(name)), nil
	}
}

// listFilter makes a filter from the items of its parameter, a JSON list; an empty list selects everything.
func listFilter[T any](build func(*api.Caller, []T) rowFilter) func(*api.Caller, *api.Input, string) (rowFilter, error) {
	return func(c *api.Caller, in *api.Input, name string) (rowFilter, error) {
		var wanted []T
		if given, err := in.JSONParam(name, &wanted); err != nil || !given || len(wanted) == 0 {
			return nil, err
		}
		return build(c, wanted), nil
	}
}

func savedFilter(c *api.Caller, value string) rowFilter {
	if !api.IsTrue(value) {
		return func(row *insightRow) bool { return !row.Saved }
	}
	return func(row *insightRow) bool { return row.Saved || len(c.Snapshot.TilesOf(row.Project, row.ID)) > 0 }
}

func authorFilter(c *api.Caller, users []int64) rowFilter {
	wanted := api.SetOf(users)
	return func(row *insightRow) bool {
		user := c.UserNumber(row.CreatedBy)
		return user != 0 && wanted[user]
	}
}

func tagFilter(_ *api.Caller, tags []string) rowFilter {
	tagged := registry.HasTag(tags)
	return func(row *insightRow) bool { return tagged(row.Tags) }
}

func dashboardFilter(c *api.Caller, ids []int64) rowFilter {
	wanted := api.SetOf(ids)
	return func(row *insightRow) bool {
		var on []int64
		for _, t := range c.Snapshot.TilesOf(row.Project, row.ID) {
			on = append(on, t.Dashboard)
		}
		return hasAll(on, wanted)
	}
}

// savedKinds holds the kinds of a stored query and of the query inside it.
type savedKinds struct {
	Kind   string `json:"kind"`
	Source struct {
		Kind string `json:"kind"`
	} `json:"source"`
}

// kindFilter finds only wrapped queries, as PostHog does: insights in the node that displays them, SQL in any node, and others as JSON.
func kindFilter(_ *api.Caller, value string) rowFilter {
	return func(row *insightRow) bool {
		var kinds savedKinds
		if row.Query == nil || json.Unmarshal(row.Query, &kinds) != nil {
			return false
		}
		kind := compiler.KindNamed(kinds.Source.Kind)
		if kind == nil || kind.ListName == "" {
			return value == "JSON"
		}
		return kind.ListName == value && (!kind.Insight || kinds.Kind == kind.Wrapper)
	}
}

func eventFilter(_ *api.Caller, wanted []string) rowFilter {
	all := api.SetOf(wanted)
	return func(row *insightRow) bool { return hasAll(eventsIn(row.Query), all) }
}

// hasAll reports whether a list contains all wanted items.
func hasAll[T comparable](list []T, wanted map[T]bool) bool {
	found := make(map[T]bool, min(len(list), len(wanted)))
	for _, item := range list {
		if wanted[item] {
			found[item] = true
		}
	}
	return len(found) == len(wanted)
}

// eventsIn lists the events that a stored query names in its series, entities and exclusions, but not those in the text of SQL.
func eventsIn(raw json.RawMessage) []string {
	var events []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			var name any
			switch {
			case v["type"] == "events": // an entity of retention
				name = v["id"]
			case v["kind"] != nil: // a series, or a list of events
				name = v["event"]
			}
			if event, ok := name.(string); ok {
				events = append(events, event)
			}
			for _, member := range v {
				walk(member)
			}
		}
	}
	var v any
	if raw != nil && json.Unmarshal(raw, &v) == nil {
		walk(v)
	}
	return events
}

func flagFilter(_ *api.Caller, flag string) rowFilter {
	return func(row *insightRow) bool { return trigram.Contains("$feature/"+flag, string(row.Query)) }
}

// flagInsights are the names of the insights that PostHog creates for each feature flag.
var flagInsights = []string{"Feature Flag Called Total Volume", "Feature Flag calls made by unique users per variant"}

func hideFlagsFilter(_ *api.Caller, value string) rowFilter {
	if !api.IsTrue(value) {
		return nil
	}
	return func(row *insightRow) bool { return !slices.Contains(flagInsights, api.Deref(row.Name)) }
}

// dateFilter makes a filter with a bound on a time. Texts are those of contract api.md section 2.2, in the project's time zone.
func dateFilter(c *api.Caller, in *api.Input, name string) (rowFilter, error) {
	value, zone := in.URL.Query().Get(name), c.Snapshot.Schema(c.Project.ID).Location
	at, ok := filter.AnyDate(value, c.Start.In(zone), zone, c.Project.WeekStart)
	if !ok {
		return nil, api.Invalid(name, "invalid_input", "The date %s is neither ISO 8601 nor relative, such as -7d.", api.ShowValue(value))
	}
	field, isFrom := strings.CutSuffix(name, "date_from")
	field = cmp.Or(strings.TrimSuffix(field, "date_to"), "modified_")
	return func(row *insightRow) bool {
		var when time.Time
		switch field {
		case "modified_":
			when = row.LastModifiedAt
		case "created_":
			when = row.CreatedAt
		case "last_viewed_":
			when = row.viewed
		}
		if when.IsZero() {
			return false
		}
		if isFrom {
			return when.After(at.Time)
		}
		return when.Before(at.Time)
	}, nil
}

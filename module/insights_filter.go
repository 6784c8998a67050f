package module

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/internal/trigram"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// maxSearch is the most characters of a search: contract section 4.2.
const maxSearch = 200

// The similarities from which a text that does not hold the search counts as similar to it. Descriptions are prose, where
// something similar to a short word is always found; they count for less, too.
const (
	nameSimilarity        = 0.3
	descriptionSimilarity = 0.4
	descriptionWeight     = 0.5
)

// sameName is the score of a name that is the search itself, above all similarities.
const sameName = 2

// searchInsights keeps the rows that the search finds in their names, description or tags: as it is written, or nearly so.
func (rq *request) searchInsights(rows []insightRow) ([]insightRow, error) {
	search := strings.TrimSpace(rq.r.URL.Query().Get("search"))
	if utf8.RuneCountInString(search) > maxSearch {
		return nil, api.Invalid("search", "invalid_input", "Search query must be %d characters or fewer.", maxSearch)
	}
	if search == "" {
		return rows, nil
	}
	term := trigram.New(search)
	found := rows[:0]
	for _, row := range rows {
		name, derived, description := api.Deref(row.Name), api.Deref(row.DerivedName), api.Deref(row.Description)
		inName := max(term.Similarity(name), term.Similarity(derived))
		inDescription := term.Similarity(description)
		row.score = max(inName, descriptionWeight*inDescription)
		if strings.EqualFold(name, search) || strings.EqualFold(derived, search) {
			row.score = sameName
		}
		switch {
		case trigram.Contains(search, append([]string{name, derived, description}, row.Tags...)...):
			row.match = "exact"
		case inName >= nameSimilarity || inDescription >= descriptionSimilarity:
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

// filterInsights keeps the rows for which every filter of the query string holds.
func (rq *request) filterInsights(rows []insightRow) ([]insightRow, error) {
	var filters []rowFilter
	for name := range rq.r.URL.Query() {
		build, ok := insightFilters[name]
		if !ok {
			continue
		}
		filter, err := build(rq, name, rq.r.URL.Query().Get(name))
		if err != nil {
			return nil, err
		}
		if filter != nil {
			filters = append(filters, filter)
		}
	}
	return slices.DeleteFunc(rows, func(row insightRow) bool {
		return slices.ContainsFunc(filters, func(f rowFilter) bool { return !f(&row) })
	}), nil
}

// insightFilters are the filters of contract section 4.2 by the name of their parameter: each makes a filter of the
// parameter's value, or none where the value asks for nothing.
var insightFilters = map[string]func(rq *request, name, value string) (rowFilter, error){
	"short_id": func(_ *request, _, value string) (rowFilter, error) {
		return func(row *insightRow) bool { return row.ShortID == value }, nil
	},
	"saved":      savedFilter,
	"created_by": authorFilter,
	"user":       func(rq *request, _, _ string) (rowFilter, error) { return byKey(rq.Key.ID), nil },
	"favorited": func(*request, string, string) (rowFilter, error) {
		return func(row *insightRow) bool { return row.Favorited }, nil
	},
	"tags":                       tagFilter,
	"dashboards":                 dashboardFilter,
	"insight":                    kindFilter,
	"events":                     eventFilter,
	"feature_flag":               flagFilter,
	"hide_feature_flag_insights": hideFlagsFilter,
	"date_from":                  dateFilter,
	"date_to":                    dateFilter,
	"created_date_from":          dateFilter,
	"created_date_to":            dateFilter,
	"last_viewed_date_from":      dateFilter,
	"last_viewed_date_to":        dateFilter,
}

func savedFilter(rq *request, _, value string) (rowFilter, error) {
	if !api.IsTrue(value) {
		return func(row *insightRow) bool { return !row.Saved }, nil
	}
	return func(row *insightRow) bool { return row.Saved || len(rq.Snapshot.TilesOf(row.Project, row.ID)) > 0 }, nil
}

func byKey(key string) rowFilter { return func(row *insightRow) bool { return row.CreatedBy == key } }

func authorFilter(rq *request, name, _ string) (rowFilter, error) {
	var users []int64
	if given, err := rq.jsonParam(name, &users); err != nil || !given || len(users) == 0 {
		return nil, err
	}
	return func(row *insightRow) bool {
		user := rq.UserNumber(row.CreatedBy)
		return user != 0 && slices.Contains(users, user)
	}, nil
}

func tagFilter(rq *request, name, _ string) (rowFilter, error) {
	var tags []string
	if given, err := rq.jsonParam(name, &tags); err != nil || !given || len(tags) == 0 {
		return nil, err
	}
	return func(row *insightRow) bool {
		return slices.ContainsFunc(row.Tags, func(tag string) bool { return slices.Contains(tags, tag) })
	}, nil
}

func dashboardFilter(rq *request, name, _ string) (rowFilter, error) {
	var ids []int64
	if given, err := rq.jsonParam(name, &ids); err != nil || !given || len(ids) == 0 {
		return nil, err
	}
	return func(row *insightRow) bool {
		on := rq.Snapshot.TilesOf(row.Project, row.ID)
		for _, id := range ids {
			if !slices.ContainsFunc(on, func(t *registry.Tile) bool { return t.Dashboard == id }) {
				return false
			}
		}
		return true
	}, nil
}

// savedKinds are the kinds of a stored query and of the query within it.
type savedKinds struct {
	Kind   string `json:"kind"`
	Source struct {
		Kind string `json:"kind"`
	} `json:"source"`
}

// kindFilter finds wrapped queries only, as PostHog does: insights in the node that shows them, SQL in any, and as JSON the others.
func kindFilter(_ *request, _, value string) (rowFilter, error) {
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
	}, nil
}

func eventFilter(rq *request, name, _ string) (rowFilter, error) {
	var wanted []string
	if given, err := rq.jsonParam(name, &wanted); err != nil || !given || len(wanted) == 0 {
		return nil, err
	}
	return func(row *insightRow) bool {
		events := eventsIn(row.Query)
		return !slices.ContainsFunc(wanted, func(event string) bool { return !slices.Contains(events, event) })
	}, nil
}

// eventsIn lists the events that a stored query names in its series, its entities and exclusions. Those within the text of SQL
// are not looked for.
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

func flagFilter(_ *request, _, value string) (rowFilter, error) {
	return func(row *insightRow) bool { return trigram.Contains("$feature/"+value, string(row.Query)) }, nil
}

// flagInsights are the names of the insights that the peer makes for each feature flag.
var flagInsights = []string{"Feature Flag Called Total Volume", "Feature Flag calls made by unique users per variant"}

func hideFlagsFilter(_ *request, _, value string) (rowFilter, error) {
	if !api.IsTrue(value) {
		return nil, nil
	}
	return func(row *insightRow) bool { return !slices.Contains(flagInsights, api.Deref(row.Name)) }, nil
}

// dateFilter makes the filters from and to of a time; texts are those of contract section 2.2, in the project's zone.
func dateFilter(rq *request, name, value string) (rowFilter, error) {
	zone := rq.Snapshot.Schema(rq.Project.ID).Location
	at, ok := filter.Date(value, rq.Start.In(zone), zone)
	if !ok {
		return nil, api.Invalid(name, "invalid_input", "%s", fmt.Sprintf("The date %s is neither ISO 8601 nor relative, such as -7d.", api.ShowValue(value)))
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
			return when.After(at)
		}
		return when.Before(at)
	}, nil
}

package paths

import (
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// The queries for the actors of some steps. moment has the details of a step's event: a tuple as in details or recordedDetails.
const (
	taken = `SELECT person_id, tupleElement(step, 1) AS place, tupleElement(step, 2) AS previous, tupleElement(step, 3) AS name,
		tupleElement(step, 4) AS moment, places FROM (
		SELECT person_id, length(names) AS places, arrayJoin(arrayZip(
			arrayEnumerate(names), arrayPopBack(arrayPushFront(names, '')), names, times
		)) AS step FROM {paths}
	)`
	matched = `SELECT person_id AS actor_id, count() AS event_count, groupUniqArray(tupleElement(moment, 2)) AS event_distinct_ids,
		max(tupleElement(moment, 3)) AS last_seen FROM {taken} WHERE {condition} GROUP BY person_id`
	// recorded also returns some of the events.
	recorded = `SELECT person_id AS actor_id, count() AS event_count, groupUniqArray(tupleElement(moment, 2)) AS event_distinct_ids,
		max(tupleElement(moment, 3)) AS last_seen, groupUniqArray({most})(tuple(
			tupleElement(moment, 3), tupleElement(moment, 4), tupleElement(moment, 5), tupleElement(moment, 6)
		)) AS matching_events FROM {taken} WHERE {condition} GROUP BY person_id`
	details         = `(_toMicroseconds(timestamp), distinct_id, timestamp)`
	recordedDetails = `(_toMicroseconds(timestamp), distinct_id, timestamp, uuid, $session_id, $window_id)`
)

// Actors returns the query for the people who left at a step, came from one or to one, or took an edge, as the keys in the query say;
// without keys, for the people of all paths. event_count is the number of such steps. The bounds on the weight of edges do not apply
// (contract: paths.md, section 9). The error is a *diag.Error.
func Actors(q *Query, at *query.InsightActors, w *insight.World) (*insight.People, error) {
	b, err := newBuilder(q, w)
	if err != nil {
		return nil, err
	}
	condition, err := b.chosen()
	if err != nil {
		return nil, err
	}
	text, held := matched, details
	out := &insight.People{Extra: []string{insight.EventCount, insight.EventDistinctIDs, insight.LastSeen}}
	if at.Recordings {
		text, held, out.Extra = recorded, recordedDetails, append(out.Extra, insight.MatchingEvents)
	}
	paths, err := b.paths(insight.TemplateExpr(held, nil), insight.TemplateExpr("tupleElement(times, 1)", nil))
	if err != nil {
		return nil, err
	}
	out.Query = over(text, "taken", over(taken, "paths", paths, nil), map[string]any{
		"condition": insight.OrTrue(condition), "most": int64(insight.MostMatching),
	})
	return out, nil
}

// chosen returns the condition on the steps of the actors; nil for all steps.
func (b *builder) chosen() (hogql.Expr, error) {
	if key := b.query.DropoffKey; key != "" {
		place, name, err := b.key("pathDropoffKey", key)
		if err != nil {
			return nil, err
		}
		return insight.And(is("place", place), is("places", place), is("name", name)), nil
	}
	var source, target hogql.Expr
	if key := b.query.StartKey; key != "" {
		place, name, err := b.key("pathStartKey", key)
		if err != nil {
			return nil, err
		}
		source = insight.And(is("place", place+1), is("previous", name))
	}
	if key := b.query.EndKey; key != "" {
		place, name, err := b.key("pathEndKey", key)
		if err != nil {
			return nil, err
		}
		target = insight.And(is("place", place), is("name", name))
	}
	return insight.And(source, target), nil
}

func is(field string, value any) hogql.Expr {
	return insight.Eq(insight.Field(field), insight.Const(value))
}

// key parses the key of a step, such as 2_/pricing.
func (b *builder) key(field, key string) (place int64, name string, err error) {
	number, name, ok := strings.Cut(key, "_")
	place, wrong := strconv.ParseInt(number, 10, 32)
	if !ok || wrong != nil || place < 1 || strconv.FormatInt(place, 10) != number {
		return 0, "", diag.Field(diag.InvalidInput, b.query.Field("pathsFilter."+field), "A step is named by its number and its name, such as 2_/pricing")
	}
	return place, name, nil
}

package query

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// modifiers are the fields of HogQLQueryModifiers (contract: api.md, section 2.10) that take any value.
var modifiers = strings.Fields(`optimizeJoinedFilters dataWarehouseEventsModifiers debug timings s3TableUseInvalidColumns
useMaterializedViews usePresortedEventsTable useWebAnalyticsPreAggregatedTables formatCsvAllowDoubleQuotes
convertToProjectTimezone usePreaggregatedTableTransforms usePreaggregatedIntermediateResults optimizeProjections
forceClickhouseDataSkippingIndexes sessionPropertyPreAggregation`)

// modifierWords are the modifiers that take one of a few words.
var modifierWords = []struct{ name, words string }{
	{"personsOnEventsMode", "disabled person_id_no_override_properties_on_events person_id_override_properties_on_events " +
		"person_id_override_properties_joined"},
	{"personsArgMaxVersion", "auto v1 v2"},
	{"inCohortVia", "auto leftjoin subquery leftjoin_conjoined"},
	{"materializationMode", "auto legacy_null_as_string legacy_null_as_null disabled"},
	{"personsJoinMode", "inner left"},
	{"bounceRatePageViewMode", "count_pageviews uniq_urls uniq_page_screen_autocaptures"},
	{"sessionTableVersion", "auto v1 v2 v3"},
	{"sessionsV2JoinMode", "string uuid"},
	{"propertyGroupsMode", "enabled disabled optimized"},
}

// labelModifiers change what a response shows beside its rows, never the rows.
var labelModifiers = []string{"debug", "timings"}

// modifiers reads the modifiers of a node: those that decide its rows, as they were given.
func (r *reader) modifiers(o *object) map[string]any {
	given, ok := o.take("modifiers")
	if !ok {
		return nil
	}
	m := r.object(given, o.field("modifiers"))
	for _, known := range modifierWords {
		m.oneOf(known.name, strings.Fields(known.words))
	}
	if seconds, ok := take[json.Number](m, "bounceRateDurationSeconds", "float_type", "Input should be a valid number"); ok {
		if f, err := seconds.Float64(); err != nil || f < 1 || f > maxBounce {
			r.add(m.field("bounceRateDurationSeconds"), "value_error", "Input should be from 1 to "+strconv.Itoa(maxBounce))
		}
	}
	for i, item := range m.list("customChannelTypeRules") {
		r.channelRule(item, m.field("customChannelTypeRules").below(strconv.Itoa(i), true))
	}
	m.ignore(modifiers...)
	m.close()
	out := make(map[string]any, len(m.m))
	for name, v := range m.m {
		if v != nil && !slices.Contains(labelModifiers, name) {
			out[name] = v
		}
	}
	return out
}

// maxBounce is the most seconds that a bounce may last.
const maxBounce = 120

// oneOf checks a field that is one of a few words, if it is there.
func (o *object) oneOf(name string, words []string) {
	s, given := take[string](o, name, "string_type", "Input should be a valid string")
	if given && !slices.Contains(words, s) {
		last := len(words) - 1
		o.r.add(o.field(name), "enum", "Input should be '"+strings.Join(words[:last], "', '")+"' or '"+words[last]+"'")
	}
}

// channelRule checks one rule on channel types.
func (r *reader) channelRule(v any, at place) {
	o := r.object(v, at)
	o.need("channel_type")
	o.oneOf("combiner", []string{"AND", "OR"})
	for i, item := range o.list("items") {
		c := r.object(item, o.field("items").below(strconv.Itoa(i), true))
		c.oneOf("key", strings.Fields("utm_source utm_medium utm_campaign referring_domain url pathname hostname"))
		c.oneOf("op", strings.Fields("exact is_not is_set is_not_set icontains not_icontains regex not_regex"))
		for _, name := range []string{"key", "op"} {
			if !c.has(name) {
				r.add(c.field(name), "missing", "Field required")
			}
		}
		if value, ok := c.take("value"); ok && !textOrTexts(value) {
			r.add(c.field("value"), "string_type", "Input should be a valid string or a list of them")
		}
		c.ignore("id")
		c.close()
	}
	o.ignore("id")
	o.close()
}

func textOrTexts(v any) bool {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	return !slices.ContainsFunc(list, func(v any) bool { _, text := v.(string); return !text })
}

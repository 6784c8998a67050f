package query

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Modifiers change the meaning of a query without changing its text (contract: api.md, section 2.10). The zero value changes nothing.
type Modifiers struct {
	// Persons, BounceSeconds and Channels are as in schema.Modifiers; nil if not given.
	Persons       *schema.PersonMode
	BounceSeconds *float64
	Channels      []schema.ChannelRule

	Given map[string]any // all that may affect rows, as given
}

// IsZero reports whether no modifiers were given.
func (m Modifiers) IsZero() bool { return len(m.Given) == 0 }

// MarshalJSON writes the modifiers as they were given.
func (m Modifiers) MarshalJSON() ([]byte, error) { return json.Marshal(m.Given) }

// Over returns the modifiers combined with those of an outer query, which they override.
func (m Modifiers) Over(below Modifiers) Modifiers {
	m.Persons, m.BounceSeconds = cmp.Or(m.Persons, below.Persons), cmp.Or(m.BounceSeconds, below.BounceSeconds)
	if m.Channels == nil {
		m.Channels = below.Channels
	}
	return m
}

// ModifiersOf returns the effective modifiers of a query. Those of an inner query override its own.
func ModifiersOf(n Node) Modifiers {
	switch n := n.(type) {
	case *HogQL:
		return n.Modifiers
	case Insight:
		return n.Parts().Modifiers
	case PeopleSource:
		return n.Behind().Parts().Modifiers.Over(n.OwnModifiers())
	case interface{ Around() (Modifiers, Node) }:
		own, source := n.Around()
		return ModifiersOf(source).Over(own)
	}
	return Modifiers{}
}

// unusedModifiers accept any value and have no effect here.
var unusedModifiers = strings.Fields(`optimizeJoinedFilters dataWarehouseEventsModifiers debug timings s3TableUseInvalidColumns
useMaterializedViews usePresortedEventsTable useWebAnalyticsPreAggregatedTables formatCsvAllowDoubleQuotes
convertToProjectTimezone usePreaggregatedTableTransforms usePreaggregatedIntermediateResults optimizeProjections
forceClickhouseDataSkippingIndexes sessionPropertyPreAggregation sessionIdPushdown materializedColumnsOptimizationMode
typeAwareCastSimplification pushDownPredicates mergeFederatedAggregateJoins parserMode cookielessTrafficIsRegular`)

// modifierWords are the modifiers whose value is one of a few words.
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
	{"inlineCohortCalculation", "off auto always"},
}

// labelModifiers affect what a response shows besides its rows, but never the rows.
var labelModifiers = []string{"debug", "timings"}

// Modifiers reads the modifiers of a node that affect its rows. PostHog's answers list all that it has: an unknown one is a mistake only if it is set.
func (r *Reader) Modifiers(o *Object) Modifiers {
	given, ok := o.Take("modifiers")
	if !ok {
		return Modifiers{}
	}
	m := r.Object(given, o.Field("modifiers"))
	out := Modifiers{Given: make(map[string]any, len(m.Given))}
	for _, known := range modifierWords {
		m.oneOf(known.name, strings.Fields(known.words))
	}
	if word, ok := m.Given["personsOnEventsMode"].(string); ok {
		mode := schema.PersonModes[word]
		out.Persons = &mode
	}
	if seconds, ok := Take[json.Number](m, "bounceRateDurationSeconds", "float_type", "Input should be a valid number"); ok {
		f, err := seconds.Float64()
		if err != nil || f < 1 || f > maxBounce {
			r.Add(m.Field("bounceRateDurationSeconds"), "value_error", "Input should be from 1 to "+strconv.Itoa(maxBounce))
		}
		out.BounceSeconds = &f
	}
	if _, ok := m.Take("customChannelTypeRules"); ok {
		out.Channels = r.channelRules(m)
	}
	if bots := m.List("customBotDefinitions"); len(bots) > 0 {
		r.Refuse(m.Field("customBotDefinitions"), "Bot definitions of your own are not supported.")
	}
	m.Ignore(unusedModifiers...)
	for name, v := range m.Given {
		if v == nil {
			m.Ignore(name)
		}
	}
	m.Close()
	for name, v := range m.Given {
		if v != nil && !slices.Contains(labelModifiers, name) {
			out.Given[name] = v
		}
	}
	return out
}

// maxBounce is the most seconds that a bounce may last.
const maxBounce = 120

// oneOf reads an optional field that has one of a few words.
func (o *Object) oneOf(name string, words []string) string {
	s, given := Take[string](o, name, "string_type", "Input should be a valid string")
	if given && !slices.Contains(words, s) {
		o.r.Add(o.Field(name), "enum", "Input should be "+oneOf(words))
	}
	return s
}

// channelRules reads rules on channel types.
func (r *Reader) channelRules(m *Object) []schema.ChannelRule {
	const name = "customChannelTypeRules"
	out := []schema.ChannelRule{}
	for i, item := range m.List(name) {
		o := r.Object(item, m.Field(name).Below(strconv.Itoa(i), true))
		rule := schema.ChannelRule{Channel: o.Need("channel_type"), Any: o.oneOf("combiner", []string{"AND", "OR"}) == "OR"}
		for i, item := range o.List("items") {
			rule.Conditions = append(rule.Conditions, r.channelCondition(item, o.Field("items").Below(strconv.Itoa(i), true)))
		}
		o.Ignore("id")
		o.Close()
		out = append(out, rule)
	}
	return out
}

// channelCondition reads one condition of such a rule.
func (r *Reader) channelCondition(v any, at Place) schema.ChannelCondition {
	c := r.Object(v, at)
	out := schema.ChannelCondition{Key: c.oneOf("key", schema.ChannelKeys), Operator: c.oneOf("op", schema.ChannelOperators)}
	for _, name := range []string{"key", "op"} {
		if !c.Has(name) {
			r.Add(c.Field(name), "missing", "Field required")
		}
	}
	if value, ok := c.Take("value"); ok {
		list, isList := value.([]any)
		if !isList {
			list = []any{value}
		}
		for _, v := range list {
			text, isText := v.(string)
			if !isText {
				r.Add(c.Field("value"), "string_type", "Input should be a valid string or a list of them")
				break
			}
			out.Values = append(out.Values, text)
		}
	}
	c.Ignore("id")
	c.Close()
	return out
}

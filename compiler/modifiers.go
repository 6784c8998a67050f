package compiler

import (
	"encoding/json"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// modified is the database as a query with modifiers sees it. The modifiers were checked when the query was parsed.
func modified(db *schema.Database, modifiers map[string]any) *schema.Database {
	var m schema.Modifiers
	changed := false
	if mode, ok := modifiers["personsOnEventsMode"].(string); ok {
		m.Persons, changed = schema.PersonModes[mode], true
	}
	if seconds, ok := modifiers["bounceRateDurationSeconds"].(json.Number); ok {
		if f, err := seconds.Float64(); err == nil {
			m.BounceSeconds, changed = f, true
		}
	}
	if rules, ok := modifiers["customChannelTypeRules"].([]any); ok {
		m.Channels, changed = channelRules(rules), true
	}
	if !changed {
		return db
	}
	out := *db
	out.Modifiers = m
	return &out
}

func channelRules(list []any) []schema.ChannelRule {
	out := make([]schema.ChannelRule, 0, len(list))
	for _, item := range list {
		given, _ := item.(map[string]any)
		rule := schema.ChannelRule{Channel: text(given["channel_type"]), Any: given["combiner"] == "OR"}
		items, _ := given["items"].([]any)
		for _, item := range items {
			c, _ := item.(map[string]any)
			condition := schema.ChannelCondition{Key: text(c["key"]), Operator: text(c["op"])}
			values, ok := c["value"].([]any)
			if one := c["value"]; !ok && one != nil {
				values = []any{one}
			}
			for _, v := range values {
				condition.Values = append(condition.Values, text(v))
			}
			rule.Conditions = append(rule.Conditions, condition)
		}
		out = append(out, rule)
	}
	return out
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

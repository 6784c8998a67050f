package schema

import "strings"

// refused says, in a sentence, what to write instead of functions that PostHog or ClickHouse has and this table does not.
var refused = map[string]string{
	"untuple":                "Name the elements instead: t.1, t.2.",
	"generateSeries":         "It makes no table here. Write range(a, b + 1, step) with arrayJoin, or select from numbers(a, n).",
	"generate_series":        "It makes no table here. Write range(a, b + 1, step) with arrayJoin, or select from numbers(a, n).",
	"dynamicType":            "Properties are read as text. JSONType(properties, 'key') says what a property holds.",
	"uniqUpToMerge":          "There are no states of uniqUpTo to merge. Write uniq(x).",
	"convertCurrency":        "There are no exchange rates here. Multiply the amount by a rate of your own.",
	"embedText":              "There are no language models here.",
	"jev":                    "There are no language models here.",
	"__preview_llm_complete": "There are no language models here.",
	"throwIf":                "A query cannot fail on purpose. Return the condition as a column.",

	"toDateOrNull":                    "toDate gives NULL for text that is not a date.",
	"toDateTimeOrNull":                "parseDateTimeBestEffort gives NULL for text that is not a time.",
	"toUUIDOrNull":                    "toUUID gives NULL for text that is not a UUID.",
	"toUUIDOrZero":                    "toUUID gives NULL for text that is not a UUID.",
	"toFloat32OrNull":                 "toFloat gives NULL for text that is not a number.",
	"parseDateTimeBestEffortOrNull":   "parseDateTimeBestEffort gives NULL for text that is not a time.",
	"parseDateTime64BestEffort":       "Write parseDateTimeBestEffort, which gives NULL for text that is not a time.",
	"parseDateTime64BestEffortOrNull": "Write parseDateTimeBestEffort, which gives NULL for text that is not a time.",
}

// refusedPrefixes are name prefixes of functions that belong to parts of PostHog.
var refusedPrefixes = map[string]string{
	"aggregate_funnel": "Send a FunnelsQuery instead.",
}

// Refused returns what to write instead of a function that is refused on purpose; "" for any other name.
func Refused(name string) string {
	if advice := refused[name]; advice != "" {
		return advice
	}
	for prefix, advice := range refusedPrefixes {
		if strings.HasPrefix(name, prefix) {
			return advice
		}
	}
	return ""
}

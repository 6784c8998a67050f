package schema

import (
	"iter"
	"strings"
)

// Unit is a unit of time that a query names as text: date_part('year', x), dateAdd('day', 1, x), dateTrunc('week', x).
// An empty field means that the unit has no such function.
type Unit struct {
	Name     string // as ClickHouse takes it: second, day, …
	Interval string // the ClickHouse function that makes an interval of a number of them
	Part     string // the ClickHouse function that reads this part of a time
}

// units holds the units by their names in lower case, without the plural's s.
var units = map[string]Unit{
	"microsecond": {Name: "microsecond", Interval: "toIntervalMicrosecond"},
	"millisecond": {Name: "millisecond", Interval: "toIntervalMillisecond"},
	"second":      {"second", "toIntervalSecond", "toSecond"},
	"minute":      {"minute", "toIntervalMinute", "toMinute"},
	"hour":        {"hour", "toIntervalHour", "toHour"},
	"day":         {"day", "toIntervalDay", "toDayOfMonth"},
	"week":        {"week", "toIntervalWeek", "toISOWeek"},
	"month":       {"month", "toIntervalMonth", "toMonth"},
	"quarter":     {"quarter", "toIntervalQuarter", "toQuarter"},
	"year":        {"year", "toIntervalYear", "toYear"},
	"dow":         {Name: "weekday", Part: "toDayOfWeek"},
	"weekday":     {Name: "weekday", Part: "toDayOfWeek"},
	"doy":         {Name: "dayofyear", Part: "toDayOfYear"},
	"dayofyear":   {Name: "dayofyear", Part: "toDayOfYear"},
	"epoch":       {Part: "toUnixTimestamp"},
}

// UnitNames yields the names of the units that ok takes, in no order.
func UnitNames(ok func(Unit) bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, u := range units {
			if ok(u) && !yield(name) {
				return
			}
		}
	}
}

// longestUnit bounds the text that LookupUnit looks at.
const longestUnit = len("microseconds")

// LookupUnit finds a unit of time by its name in any case, singular or plural.
func LookupUnit(name string) (Unit, bool) {
	if len(name) > longestUnit {
		return Unit{}, false
	}
	name = strings.ToLower(name)
	if u, ok := units[name]; ok {
		return u, true
	}
	u, ok := units[strings.TrimSuffix(name, "s")]
	return u, ok
}

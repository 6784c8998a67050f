package schema

import (
	"iter"
	"strings"
)

// Unit is a unit of time that a query names by text: date_part('year', x), dateAdd('day', 1, x), dateTrunc('week', x). An empty field means that the
// unit has no such function.
type Unit struct {
	Name     string // ClickHouse's name: second, day, …
	Interval string // the ClickHouse function for an interval of a number of units
	Part     string // the ClickHouse function for this part of a time
	Long     bool   // longer than a day: times rounded down to it are dates
}

// units maps singular names in lower case to units.
var units = map[string]Unit{
	"microsecond": {Name: "microsecond", Interval: "toIntervalMicrosecond"},
	"millisecond": {Name: "millisecond", Interval: "toIntervalMillisecond"},
	"second":      {"second", "toIntervalSecond", "toSecond", false},
	"minute":      {"minute", "toIntervalMinute", "toMinute", false},
	"hour":        {"hour", "toIntervalHour", "toHour", false},
	"day":         {"day", "toIntervalDay", "toDayOfMonth", false},
	"week":        {"week", "toIntervalWeek", "toISOWeek", true},
	"month":       {"month", "toIntervalMonth", "toMonth", true},
	"quarter":     {"quarter", "toIntervalQuarter", "toQuarter", true},
	"year":        {"year", "toIntervalYear", "toYear", true},
	"dow":         {Name: "weekday", Part: "toDayOfWeek"},
	"weekday":     {Name: "weekday", Part: "toDayOfWeek"},
	"doy":         {Name: "dayofyear", Part: "toDayOfYear"},
	"dayofyear":   {Name: "dayofyear", Part: "toDayOfYear"},
	"epoch":       {Part: "toUnixTimestamp"},
}

// UnitNames yields the names of the units that ok accepts, in no order.
func UnitNames(ok func(Unit) bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, u := range units {
			if ok(u) && !yield(name) {
				return
			}
		}
	}
}

// longestUnit is the longest text that LookupUnit looks up.
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

package lifecycle

import (
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Buckets are numbered from 1970, so that each number is one more than the one of the bucket before. Queries and Go code use the same
// numbers.

// number returns the number of a bucket by its key.
func number(interval query.Interval, key hogql.Expr) hogql.Expr {
	text := "dateDiff('day', toDate('1970-01-01'), {key})"
	switch interval {
	case query.Second:
		text = "{key}"
	case query.Minute:
		text = "intDiv({key}, 60)"
	case query.Hour:
		text = "intDiv({key}, 3600)"
	case query.Week:
		// 1970 began on a Thursday: with 4 days more, a week's Sunday and its Monday are in one block of 7 days.
		text = "intDiv(dateDiff('day', toDate('1970-01-01'), {key}) + 4, 7)"
	case query.Month:
		text = "dateDiff('month', toDate('1970-01-01'), {key})"
	case query.Quarter:
		text = "dateDiff('quarter', toDate('1970-01-01'), {key})"
	case query.Year:
		text = "dateDiff('year', toDate('1970-01-01'), {key})"
	case query.Day:
	}
	return insight.TemplateExpr(text, map[string]any{"key": key})
}

// numberOf returns the number of the bucket that starts at a time.
func numberOf(interval query.Interval, start time.Time) int64 {
	year, month, day := start.Date()
	days := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60)
	switch interval {
	case query.Second:
		return start.Unix()
	case query.Minute:
		return start.Unix() / 60
	case query.Hour:
		return start.Unix() / 3600
	case query.Week:
		return (days + 4) / 7
	case query.Month, query.Quarter, query.Year:
		return (int64(year-1970)*12 + int64(month-time.January)) / int64(interval.Months())
	case query.Day:
	}
	return days
}

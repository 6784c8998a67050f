package resolve

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// zoned converts a time of a table to the project's zone, or to the one that it was computed in. Times of queries are already in theirs.
func (r *resolver) zoned(e resolved.Expr, shown string) resolved.Expr {
	c, ok := e.(*resolved.Column)
	if !ok || c.Type.Kind != hogql.DateTime || shown == r.zone {
		return e
	}
	return native(c.Type, c.Pos, "toTimeZone", c, literal(r.zoneOf(c.Type)))
}

// zoneOf returns the time zone that times of a type are in.
func (r *resolver) zoneOf(t hogql.Type) string { return cmp.Or(t.Zone, r.zone) }

// inZone returns the type of times in a zone, the name of which is a constant.
func (r *resolver) inZone(t hogql.Type, zone resolved.Expr) hogql.Type {
	t.Zone = ""
	if name, _ := text(zone); name != r.zone {
		t.Zone = name
	}
	return t
}

// serverZone is the zone of the times that ClickHouse makes from anything but a time, if it is given none: that of the session.
const serverZone = "UTC"

// onServer returns the type of times in that zone.
func (r *resolver) onServer(t hogql.Type) hogql.Type { return r.inZone(t, literal(serverZone)) }

// zonedResult returns the type of a call, given its arguments as written: a time is in the zone that the call names, or else in the zone of the time
// that it is computed from. A time that is computed from a date is in the server's zone.
func (r *resolver) zonedResult(f *schema.Function, args []resolved.Expr) hogql.Type {
	t := resultType(f, args)
	if t.Kind != hogql.DateTime || f.Aggregate {
		return t
	}
	if at := f.ZoneAt; at > 0 && at <= len(args) && !isTime(typeOf(args[at-1]).Kind) {
		return r.inZone(t, args[at-1])
	}
	if f.Zone > 0 && len(args) == f.Zone-1 {
		return r.inZone(t, literal(r.zone))
	}
	for _, arg := range args {
		switch from := typeOf(arg); {
		case from.Kind == hogql.DateTime:
			t.Zone = from.Zone
			return t
		case from.Kind == hogql.Date && f.Result.Kind == hogql.DateTime:
			return r.onServer(t)
		}
	}
	if f.UTC {
		return r.onServer(t)
	}
	return t
}

// bare removes the zone conversion from a time of a table. The time is the same in any zone, and on the bare column ClickHouse can tell which rows a
// comparison concerns.
func bare(e resolved.Expr) resolved.Expr {
	if n, ok := e.(*resolved.Native); ok && n.Name == "toTimeZone" && len(n.Args) == 2 {
		if c, ok := n.Args[0].(*resolved.Column); ok {
			return c
		}
	}
	return e
}

// isLeaf reports whether an expression is read rather than computed.
func isLeaf(e resolved.Expr) bool {
	if c, ok := e.(*resolved.Const); ok {
		_, list := c.Value.([]any)
		return !list
	}
	return is[*resolved.Column](e) || is[*resolved.AliasRef](e) || is[*resolved.LambdaParam](e)
}

// comparands prepares the sides of a comparison. Compared with a time, a text is a time in its zone, and a date is midnight there. A date is also
// midnight, in the project's zone, when compared with a text that has a time of day. Columns are compared bare.
func (r *resolver) comparands(left, right resolved.Expr) (resolved.Expr, resolved.Expr) {
	l, t := typeOf(left), typeOf(right)
	if l.Kind != hogql.DateTime && t.Kind != hogql.DateTime && !dateAndClock(left, right) && !dateAndClock(right, left) {
		return left, right
	}
	left, right = r.instant(left, r.zoneOf(t)), r.instant(right, r.zoneOf(l))
	if typeOf(left).Kind == hogql.DateTime && typeOf(right).Kind == hogql.DateTime {
		return bare(left), bare(right)
	}
	return left, right
}

// dateAndClock reports whether a date is beside a constant text with a time of day, which ClickHouse does not read as a date.
func dateAndClock(e, beside resolved.Expr) bool {
	s, ok := text(beside)
	return ok && typeOf(e).Kind == hogql.Date && clockTime.MatchString(s)
}

// instant converts a constant text or a date to a time, for comparison with a time in a zone.
func (r *resolver) instant(e resolved.Expr, zone string) resolved.Expr {
	if s, ok := text(e); ok {
		return r.timeOf(s, zone, e.At())
	}
	if t := typeOf(e); t.Kind == hogql.Date {
		t.Kind = hogql.DateTime
		in := literal(zone)
		return native(r.inZone(t, in), e.At(), "toDateTime", e, in)
	}
	return e
}

// instants does the same for the members of a set.
func (r *resolver) instants(items []resolved.Expr, zone string) []resolved.Expr {
	out := make([]resolved.Expr, len(items))
	for i, item := range items {
		out[i] = r.instant(item, zone)
	}
	return out
}

// The formats of a time that need no guessing.
var (
	plainTime = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}( \d{2}:\d{2}:\d{2})?$`)
	fineTime  = regexp.MustCompile(`^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d{1,6}$`)
	clockTime = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}[ T]\d`)
	plainDate = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
)

// timeOf converts a text to a time, in the given zone unless the text names another.
func (r *resolver) timeOf(s, zone string, at hogql.Span) resolved.Expr {
	if !readableTime(s) {
		r.mistake(at, "The text '%s' cannot be read as a time. Write '2024-01-31' or '2024-01-31 12:00:00', or compute it: "+
			"now() - interval 1 day, toStartOfDay(now())", clipped(s))
	}
	name := "parseDateTime64BestEffort"
	if plainTime.MatchString(s) || fineTime.MatchString(s) {
		name = "toDateTime64"
	}
	in := literal(zone)
	return native(r.inZone(timeType, in), at, name, &resolved.Const{Pos: at, Value: s}, literal(int64(6)), in)
}

var monthName = regexp.MustCompile(`(?i)jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec`)

// readableTime reports whether ClickHouse may be able to parse a time from a text. It cannot parse words, or days that no month has. A month or day of
// zero means the first one to ClickHouse.
func readableTime(s string) bool {
	if !strings.ContainsAny(s, "0123456789") {
		return monthName.MatchString(s)
	}
	const form = "2024-01-31"
	if len(s) < len(form) || s[4] != '-' || s[7] != '-' || len(s) > len(form) && s[len(form)] != ' ' && s[len(form)] != 'T' {
		return true
	}
	year, err := strconv.Atoi(s[:4])
	month, err2 := strconv.Atoi(s[5:7])
	day, err3 := strconv.Atoi(s[8:10])
	if err != nil || err2 != nil || err3 != nil || month <= 0 || day <= 0 {
		return true
	}
	return month <= 12 && day <= time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// clipped shortens a text for a message.
func clipped(s string) string {
	const most = 40
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

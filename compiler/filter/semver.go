package filter

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// version compares versions of the form X.Y.Z. A value that is not a version only satisfies semver_neq.
func (c propertyCondition) version(operator string, values []any) (hogql.Expr, bool) {
	if len(values) != 1 {
		return nil, false
	}
	text, ok := toText(values[0])
	if !ok {
		return nil, false
	}
	if operator == "wildcard" {
		low, high, ok := wildcardVersion(text)
		return c.versions(low, high), ok
	}
	v, ok := parseVersion(text)
	if !ok {
		return nil, false
	}
	switch operator {
	case "eq":
		return c.versionIs(hogql.Equals, v), true
	case "neq":
		is := c.versionIs(hogql.Equals, v)
		return &hogql.Unary{Pos: c.at, Op: hogql.Not, X: is}, true
	case "gt":
		return c.versionIs(hogql.Greater, v), true
	case "gte":
		return c.versionIs(hogql.GreaterOrEquals, v), true
	case "lt":
		return c.versionIs(hogql.Less, v), true
	case "lte":
		return c.versionIs(hogql.LessOrEquals, v), true
	case "tilde":
		if !strings.Contains(release(text), ".") { // ~1 allows all of 1.x
			return c.versions(v, version{v[0] + 1, 0, 0}), true
		}
		return c.versions(v, version{v[0], v[1] + 1, 0}), true
	case "caret":
		return c.versions(v, v.nextBreaking()), true
	}
	return nil, false
}

// version is a version X.Y.Z.
type version [3]int

func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// nextBreaking returns the first version that ^v excludes: its leftmost nonzero number is incremented.
func (v version) nextBreaking() version {
	switch {
	case v[0] > 0:
		return version{v[0] + 1, 0, 0}
	case v[1] > 0:
		return version{0, v[1] + 1, 0}
	}
	return version{0, 0, v[2] + 1}
}

// parseVersion parses X.Y.Z, X.Y or X, with an optional v before it and an optional pre-release or build after it.
func parseVersion(text string) (version, bool) {
	var v version
	parts := strings.Split(release(text), ".")
	if len(parts) > len(v) {
		return v, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return v, false
		}
		v[i] = int(n)
	}
	return v, true
}

// release returns the numbers of a version, as text.
func release(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), "v")
	if end := strings.IndexAny(text, "-+"); end >= 0 {
		text = text[:end]
	}
	return text
}

// wildcardVersion parses 1.* or 1.2.* as the versions from low up to, but not including, high.
func wildcardVersion(text string) (low, high version, ok bool) {
	prefix := strings.TrimSuffix(strings.TrimSpace(text), ".*")
	low, ok = parseVersion(prefix)
	high = low
	switch strings.Count(prefix, ".") {
	case 0:
		high[0]++
	case 1:
		high[1]++
	default:
		high[2]++
	}
	return low, high, ok
}

func (c propertyCondition) versions(low, high version) hogql.Expr {
	return &hogql.Logic{Pos: c.at, Args: []hogql.Expr{c.versionIs(hogql.GreaterOrEquals, low), c.versionIs(hogql.Less, high)}}
}

// versionIs compares the numbers of a version. A value that is not a version has the single number NULL.
func (c propertyCondition) versionIs(op hogql.CompareOp, v version) hogql.Expr {
	numbers := func() hogql.Expr {
		return c.call("sortableSemVer", c.call("ifNull", c.text(), &hogql.Const{Pos: c.at, Value: ""}))
	}
	return &hogql.Logic{Pos: c.at, Args: []hogql.Expr{
		&hogql.Compare{Pos: c.at, Op: hogql.Equals, Left: c.call("length", numbers()), Right: &hogql.Const{Pos: c.at, Value: int64(len(v))}},
		&hogql.Compare{Pos: c.at, Op: op, Left: numbers(), Right: c.call("sortableSemVer", &hogql.Const{Pos: c.at, Value: v.String()})},
	}}
}

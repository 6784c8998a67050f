package module

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// widen gives the columns of a query the types that they have whatever its variables are: a variable may be NULL, a number may have
// a fraction, and one without a default is never what the first description took it for. A description that fails says nothing;
// a column whose types have nothing in common has none.
func (p *publisher) widen(ctx context.Context, node query.Node, columns []registry.Column, now time.Time) []registry.Column {
	q, ok := node.(*query.HogQL)
	if !ok || len(q.Variables) == 0 {
		return columns
	}
	for _, fill := range []func(*registry.Variable, query.Variable) query.Variable{typicalValue, nullValue, fractionValue} {
		filled := *q
		filled.Variables = maps.Clone(q.Variables)
		for id, v := range filled.Variables {
			filled.Variables[id] = fill(p.snap.VariableByID(p.project.ID, id), v)
		}
		compiled, err := p.compile(ctx, &filled, now)
		if err != nil {
			continue
		}
		others, err := p.describe(ctx, compiled)
		if err != nil || len(others) != len(columns) {
			continue
		}
		for i := range columns {
			c := &columns[i]
			c.ClickHouse = widest(c.ClickHouse, others[i].ClickHouse)
			if c.Type == unknownType && c.ClickHouse != "" {
				c.Type = wireType(c.ClickHouse)
			}
		}
	}
	return columns
}

// withValue is a variable with a value of its own.
func withValue(v query.Variable, value any) query.Variable {
	v.Value, v.HasValue, v.IsNull = value, true, false
	return v
}

// typicalValue gives variables without a default a value of their type.
func typicalValue(def *registry.Variable, v query.Variable) query.Variable {
	if v.HasValue || v.IsNull || def.Default != nil {
		return v
	}
	switch def.Type {
	case registry.VariableNumber:
		return withValue(v, json.Number("1"))
	case registry.VariableBoolean:
		return withValue(v, true)
	case registry.VariableDate:
		return withValue(v, "2026-01-31")
	case registry.VariableList:
		var item any = "text"
		if len(def.Values) > 0 {
			item = def.Values[0]
		}
		if def.IsMulti {
			item = []any{item}
		}
		return withValue(v, item)
	case registry.VariableString:
	}
	return withValue(v, "text")
}

func nullValue(_ *registry.Variable, v query.Variable) query.Variable {
	v.Value, v.HasValue, v.IsNull = nil, false, true
	return v
}

func fractionValue(def *registry.Variable, v query.Variable) query.Variable {
	if def.Type == registry.VariableNumber {
		return withValue(v, json.Number("-1.5"))
	}
	return typicalValue(def, v)
}

// widest is the type that holds the values of both; empty for types that have none in common, and when one is not known.
func widest(a, b string) string {
	if a == b || a == "" {
		return a
	}
	x, nullX := withoutNull(a)
	y, nullY := withoutNull(b)
	null := nullX || nullY
	const nothing = "Nothing" // the type of NULL
	switch {
	case x == nothing:
		x = y
	case y == nothing || x == y:
	case isInteger(x) && isInteger(y):
		x = "Int64"
	case (isInteger(x) || isFloat(x)) && (isInteger(y) || isFloat(y)):
		x = "Float64"
	default:
		itemX, listX := strings.CutPrefix(x, "Array(")
		itemY, listY := strings.CutPrefix(y, "Array(")
		if !listX || !listY {
			return ""
		}
		item := widest(strings.TrimSuffix(itemX, ")"), strings.TrimSuffix(itemY, ")"))
		if item == "" {
			return ""
		}
		x = "Array(" + item + ")"
	}
	if null {
		return "Nullable(" + x + ")"
	}
	return x
}

// withoutNull takes Nullable and LowCardinality off a type.
func withoutNull(typ string) (bare string, null bool) {
	typ = strings.TrimSpace(typ)
	if inner, ok := strings.CutPrefix(typ, "LowCardinality("); ok {
		typ = strings.TrimSuffix(inner, ")")
	}
	if inner, ok := strings.CutPrefix(typ, "Nullable("); ok {
		return strings.TrimSuffix(inner, ")"), true
	}
	return typ, typ == "Nothing"
}

func isInteger(typ string) bool {
	return strings.HasPrefix(strings.TrimPrefix(typ, "U"), "Int") && wireType(typ) == "integer"
}

func isFloat(typ string) bool { return wireType(typ) == "float" && strings.HasPrefix(typ, "Float") }

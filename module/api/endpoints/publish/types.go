package publish

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/columntype"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// widen changes the types of a query's columns to ones that hold for all values of its variables: a variable may be NULL, a number may have a fraction, and
// a variable without a default is never of the type that the first description assumed. A description that fails is ignored; a column whose types have
// nothing in common gets none. The error is that of a limit.
func (d *describer) widen(ctx context.Context, node query.Node, columns []registry.Column, now time.Time) ([]registry.Column, error) {
	for _, fill := range []fillVariable{typicalValue, nullValue, fractionValue} {
		filled := d.filled(node, fill)
		if filled == nil {
			return columns, nil
		}
		others, err := d.columnsOf(ctx, filled, now)
		if execution.IsRefusal(err) {
			return nil, err
		}
		if err != nil || len(others) != len(columns) {
			continue
		}
		for i := range columns {
			c := &columns[i]
			c.ClickHouse = columntype.Widest(c.ClickHouse, others[i].ClickHouse)
			if c.Type == columntype.Unknown && c.ClickHouse != "" {
				c.Type = columntype.Wire(c.ClickHouse)
			}
		}
	}
	return columns, nil
}

// fillVariable returns a variable with a value that suits its definition.
type fillVariable func(*registry.Variable, query.Variable) query.Variable

// filled returns a copy of a query with other values for its variables; nil if it has no variables.
func (p *Publisher) filled(node query.Node, fill fillVariable) query.Node {
	q, ok := node.(*query.HogQL)
	if !ok || len(q.Variables) == 0 {
		return nil
	}
	filled := *q
	filled.Variables = maps.Clone(q.Variables)
	for id, v := range filled.Variables {
		filled.Variables[id] = fill(p.snap.VariableByID(p.project.ID, id), v)
	}
	return &filled
}

// withValue returns a variable with a value.
func withValue(v query.Variable, value any) query.Variable {
	v.Value, v.HasValue, v.IsNull = value, true, false
	return v
}

// typicalValue returns a variable without a default with a value of its type.
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

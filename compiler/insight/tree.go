package insight

import "github.com/caddy-analytics/caddy-analytics/compiler/hogql"

// Field refers to a name, or a chain of names such as person, properties, email.
func Field(chain ...string) hogql.Expr {
	f := &hogql.Field{Chain: make([]hogql.Name, len(chain))}
	for i, name := range chain {
		f.Chain[i] = hogql.Name{Text: name, Quoted: true}
	}
	return f
}

// Const is a constant: nil, a bool, an int64, a float64, a string or a time.
func Const(v any) hogql.Expr { return &hogql.Const{Value: v} }

// Call calls a function.
func Call(name string, args ...hogql.Expr) hogql.Expr { return &hogql.Call{Name: name, Args: args} }

// Compare compares two values.
func Compare(left hogql.Expr, op hogql.CompareOp, right hogql.Expr) hogql.Expr {
	return &hogql.Compare{Op: op, Left: left, Right: right}
}

// Eq reports whether two values are equal.
func Eq(left, right hogql.Expr) hogql.Expr { return Compare(left, hogql.Equals, right) }

// And joins conditions and skips those that are nil, which count as true. It returns nil if all are.
func And(conditions ...hogql.Expr) hogql.Expr { return logic(false, conditions) }

// Or joins conditions, none of which may be nil.
func Or(conditions ...hogql.Expr) hogql.Expr { return logic(true, conditions) }

func logic(or bool, conditions []hogql.Expr) hogql.Expr {
	var all []hogql.Expr
	for _, c := range conditions {
		if c == nil {
			continue
		}
		if inner, ok := c.(*hogql.Logic); ok && inner.Or == or {
			all = append(all, inner.Args...)
			continue
		}
		all = append(all, c)
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return &hogql.Logic{Or: or, Args: all}
}

// OrTrue returns a condition, or true if it is nil.
func OrTrue(condition hogql.Expr) hogql.Expr {
	if condition == nil {
		return Const(true)
	}
	return condition
}

// As gives a value a name.
func As(x hogql.Expr, name string) hogql.Expr {
	return &hogql.Alias{X: x, Name: hogql.Name{Text: name}}
}

// From makes a query a table.
func From(q hogql.Query) hogql.Table { return &hogql.Derived{Query: q} }

// GroupBy groups by names or expressions; it returns nil if there are none.
func GroupBy(keys ...hogql.Expr) *hogql.GroupBy {
	if len(keys) == 0 {
		return nil
	}
	return &hogql.GroupBy{Keys: keys}
}

// Union puts the rows of queries one after another.
func Union(members ...hogql.Query) hogql.Query {
	if len(members) == 1 {
		return members[0]
	}
	return &hogql.SetQuery{
		Members: members, Ops: make([]hogql.SetOp, len(members)-1), // UnionAll is the zero SetOp
	}
}

package bind

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// toConstant converts a caller's value to the value of a hogql.Const. Objects and other Go types are refused.
func (b *binder) toConstant(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string, int64, uint64, float64, time.Time:
		return v, nil
	case int:
		return int64(v), nil
	case json.Number:
		return filter.Number(v)
	case []string:
		b.values.Spend.Nodes(len(v))
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = item
		}
		return out, nil
	case []any:
		b.values.Spend.Nodes(len(v))
		out := make([]any, len(v))
		for i, item := range v {
			c, err := b.toConstant(item)
			if err != nil {
				return nil, err
			}
			out[i] = c
		}
		return out, nil
	case map[string]any:
		return nil, errors.New("an object is not a constant")
	}
	return nil, fmt.Errorf("a %T is not a constant", v)
}

// Globals returns a function that finds the constant that a chain of names leads to among values, and reports whether the first name is one of them. An
// error says why there is no constant at the end of the chain; a key that an object lacks is NULL.
func Globals(values map[string]any, spend *budget.Budget) func(chain []hogql.Name) (value any, found bool, err error) {
	b := binder{values: Values{Spend: spend}}
	return func(chain []hogql.Name) (any, bool, error) {
		value, found := values[chain[0].Text]
		if !found {
			return nil, false, nil
		}
		for _, name := range chain[1:] {
			object, ok := value.(map[string]any)
			if !ok {
				return nil, true, errors.New("there is nothing below a value that is not an object")
			}
			value = object[name.Text]
		}
		value, err := b.toConstant(value)
		return value, true, err
	}
}

// eval evaluates the expression in a pair of braces. The result is a constant, or an expression quoted by sql(…). If there is none, eval
// notes the mistake.
func (b *binder) eval(e hogql.Expr) (any, bool) {
	b.values.Spend.Nodes(1)
	switch e := e.(type) {
	case *hogql.Const:
		return e.Value, true
	case *hogql.Field:
		return b.lookup(e)
	case *hogql.Call:
		return b.evalCall(e)
	case *hogql.Unary:
		return b.evalUnary(e)
	case *hogql.Binary:
		return b.evalBinary(e)
	case *hogql.Compare:
		return b.evalCompare(e)
	case *hogql.Logic:
		for _, arg := range e.Args {
			v, ok := b.eval(arg)
			if !ok {
				return nil, false
			}
			if truthy(v) == e.Or {
				return e.Or, true
			}
		}
		return !e.Or, true
	case *hogql.Array:
		return b.evalList(e.Items)
	case *hogql.Tuple:
		return b.evalList(e.Items)
	case *hogql.Placeholder:
		return b.eval(e.X)
	case *hogql.Star, *hogql.ColumnsMatching, *hogql.Between, *hogql.Case, *hogql.Cast, *hogql.Dict, *hogql.Lambda, *hogql.Index,
		*hogql.Slice, *hogql.Element, *hogql.Member, *hogql.Interval, *hogql.Subquery, *hogql.Alias:
	}
	return b.notEvaluable(e)
}

func (b *binder) notEvaluable(e hogql.Expr) (any, bool) {
	b.mistake(e.At(), "This expression cannot be used in a placeholder: %s", hogql.ShortText(e))
	return nil, false
}

func (b *binder) evalList(items []hogql.Expr) (any, bool) {
	out := make([]any, len(items))
	for i, item := range items {
		v, ok := b.eval(item)
		if !ok {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}

func (b *binder) evalCall(c *hogql.Call) (any, bool) {
	switch name := strings.ToLower(c.Name); {
	case name == "sql" && len(c.Args) == 1:
		return b.expr(c.Args[0]), true // part of the query text, with its own placeholders
	case name == "if" && len(c.Args) == 3:
		v, ok := b.eval(c.Args[0])
		if !ok {
			return nil, false
		}
		if truthy(v) {
			return b.eval(c.Args[1])
		}
		return b.eval(c.Args[2])
	case (name == "ifnull" || name == "coalesce") && len(c.Args) > 0:
		for _, arg := range c.Args {
			if v, ok := b.eval(arg); !ok || v != nil {
				return v, ok
			}
		}
		return nil, true
	case name == "concat":
		args, ok := b.evalList(c.Args)
		if !ok {
			return nil, false
		}
		return b.concat(c, args)
	case (name == "lower" || name == "upper" || name == "empty" || name == "notempty") && len(c.Args) == 1:
		v, ok := b.eval(c.Args[0])
		if !ok {
			return nil, false
		}
		switch s, isText := v.(string); {
		case name == "empty":
			return empty(v), true
		case name == "notempty":
			return !empty(v), true
		case v == nil:
			return nil, true
		case !isText:
			return b.notEvaluable(c)
		case name == "lower":
			b.values.Spend.Bytes(len(s))
			return strings.ToLower(s), true
		default:
			b.values.Spend.Bytes(len(s))
			return strings.ToUpper(s), true
		}
	}
	return b.notEvaluable(c)
}

// concat joins texts like the HogQL function: NULL counts as empty.
func (b *binder) concat(at hogql.Expr, args any) (any, bool) {
	var s strings.Builder
	list, _ := args.([]any)
	for _, v := range list {
		switch v := v.(type) {
		case nil:
		case string:
			b.values.Spend.Bytes(len(v))
			s.WriteString(v)
		case int64, uint64, float64, json.Number:
			fmt.Fprint(&s, v)
		case bool:
			if v {
				s.WriteByte('1')
			} else {
				s.WriteByte('0')
			}
		default:
			return b.notEvaluable(at)
		}
	}
	return s.String(), true
}

func (b *binder) evalUnary(u *hogql.Unary) (any, bool) {
	v, ok := b.eval(u.X)
	if !ok {
		return nil, false
	}
	if u.Op == hogql.Not {
		return !truthy(v), true
	}
	switch n := filter.Numeric(v).(type) {
	case int64:
		if n != math.MinInt64 {
			return -n, true
		}
	case float64:
		return -n, true
	}
	return b.notEvaluable(u)
}

func (b *binder) evalBinary(n *hogql.Binary) (any, bool) {
	left, ok := b.eval(n.Left)
	if !ok {
		return nil, false
	}
	right, ok := b.eval(n.Right)
	if !ok {
		return nil, false
	}
	if v, ok := arithmetic(n.Op, filter.Numeric(left), filter.Numeric(right)); ok {
		return v, true
	}
	return b.notEvaluable(n)
}

func (b *binder) evalCompare(c *hogql.Compare) (any, bool) {
	left, ok := b.eval(c.Left)
	if !ok {
		return nil, false
	}
	right, ok := b.eval(c.Right)
	if !ok {
		return nil, false
	}
	x, y := alike(left, right), alike(right, left)
	switch c.Op {
	case hogql.Equals:
		return equal(x, y), true
	case hogql.NotEquals:
		return !equal(x, y), true
	case hogql.In, hogql.NotIn:
		list, isList := right.([]any)
		if !isList {
			list = []any{right}
		}
		b.values.Spend.Nodes(len(list))
		found := false
		for _, item := range list {
			found = found || equal(left, item)
		}
		return found == (c.Op == hogql.In), true
	case hogql.Less, hogql.LessOrEquals, hogql.Greater, hogql.GreaterOrEquals:
		if order, ok := compare(x, y); ok {
			switch c.Op {
			case hogql.Less:
				return order < 0, true
			case hogql.LessOrEquals:
				return order <= 0, true
			case hogql.Greater:
				return order > 0, true
			default:
				return order >= 0, true
			}
		}
		if left == nil || right == nil { // contract: hogql.md, section 10
			return false, true
		}
	case hogql.InCohort, hogql.NotInCohort, hogql.Like, hogql.NotLike, hogql.ILike, hogql.NotILike,
		hogql.Match, hogql.NotMatch, hogql.IMatch, hogql.NotIMatch:
	}
	return b.notEvaluable(c)
}

// truthy reports whether a value counts as true in a condition.
func truthy(v any) bool {
	switch v := filter.Numeric(v).(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case int64:
		return v != 0
	case uint64:
		return v != 0
	case float64:
		return v != 0
	case []any:
		return len(v) > 0
	}
	return true
}

// empty reports whether a value is NULL, or a text or list without anything in it.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	}
	return false
}

// alike converts one side of a comparison to the type in which it is compared with the other, as PostHog does: a text as a number or a boolean, a boolean
// as a number. A text that is not a number stays a text.
func alike(v, other any) any {
	other = filter.Numeric(other)
	_, number := hogql.FloatOf(other)
	_, truth := other.(bool)
	switch v := v.(type) {
	case string:
		if number {
			return numberIn(v)
		}
		if truth {
			return v != "" && !strings.EqualFold(v, "false")
		}
	case bool:
		if number && v {
			return int64(1)
		}
		if number {
			return int64(0)
		}
	}
	return v
}

// numberIn returns the number that a text stands for, or the text.
func numberIn(text string) any {
	digits := strings.TrimSpace(text)
	if strings.Trim(digits, "0123456789+-.eE") != "" { // inf, NaN and hexadecimal numbers
		return text
	}
	n, err := filter.Number(json.Number(digits))
	if err != nil {
		return text
	}
	return n
}

func equal(a, b any) bool {
	if order, ok := compare(a, b); ok {
		return order == 0
	}
	return a == nil && b == nil
}

// compare orders two numbers, two strings or two booleans.
func compare(a, b any) (int, bool) {
	a, b = filter.Numeric(a), filter.Numeric(b)
	if x, ok := a.(bool); ok {
		y, ok := b.(bool)
		switch {
		case x == y:
			return 0, ok
		case y:
			return -1, ok
		}
		return 1, ok
	}
	if x, ok := a.(string); ok {
		y, ok := b.(string)
		return strings.Compare(x, y), ok
	}
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			switch {
			case x < y:
				return -1, true
			case x > y:
				return 1, true
			}
			return 0, true
		}
	}
	x, isNumber := hogql.FloatOf(a)
	y, both := hogql.FloatOf(b)
	switch {
	case !isNumber || !both || math.IsNaN(x) || math.IsNaN(y):
		return 0, false
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	}
	return 0, true
}

// arithmetic computes with two numbers. Integers stay integers if the result fits; division always returns a float.
func arithmetic(op hogql.BinaryOp, a, b any) (any, bool) {
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			switch op {
			case hogql.Plus:
				if sum := x + y; (sum > x) == (y > 0) {
					return sum, true
				}
			case hogql.Minus:
				if diff := x - y; (diff < x) == (y > 0) {
					return diff, true
				}
			case hogql.Multiply:
				if x == 0 || y == 0 {
					return int64(0), true
				}
				if product := x * y; product/x == y && (x != -1 || y != math.MinInt64) {
					return product, true
				}
			case hogql.Modulo:
				if y == 0 {
					return nil, false
				}
				return x % y, true
			case hogql.Divide:
			}
		}
	}
	x, isNumber := hogql.FloatOf(a)
	y, both := hogql.FloatOf(b)
	if !isNumber || !both {
		return nil, false
	}
	switch op {
	case hogql.Plus:
		return x + y, true
	case hogql.Minus:
		return x - y, true
	case hogql.Multiply:
		return x * y, true
	case hogql.Divide:
		return x / y, true
	case hogql.Modulo:
		return math.Mod(x, y), true
	}
	return nil, false
}

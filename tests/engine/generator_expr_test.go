package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// keys are ways to name a property, odd ones too.
var keys = []string{
	".word", ".word", ".digits", ".digits", ".mixed", ".n", ".flag", ".at", ".nested", ".nested.deep", ".nested.deep.er", ".list",
	".list.1", "['list'][2]", ".`k k`", "['it\\'s']", ".`b\\`t`", ".\"q\"\"q\"", "['p%c']", ".`a.b`", ".`ünï`", ".$browser", ".team_id",
	".events", ".size0", ".null", "['']", ".`^word`", ".`word.:String`", ".missing", "['nested']['deep']", ".only", ".shape",
}

// constants hold no marker, but what markers begin with.
var constants = map[kind][]string{
	textKind:   {"''", "'1017'", "'zvm%'", "'zvm'", "'17'", "'1'", "'\\'; --'", "'%'", "'a'", "'{\"a\": 1}'", "'organization'"},
	numberKind: {"0", "1", "2", "17", "1017", "-1", "3.5", "18446744073709551615", "202", "201"},
	boolKind:   {"true", "false", "1 = 1", "1 = 0"},
	timeKind:   {"toDateTime('2024-01-02 00:00:00')", "toDateTime('2024-01-03 12:00:00.5')", "toDateTime('2031-01-01')"},
	uuidKind:   {"toUUID('00000000-0000-4000-8000-000000000001')"},
	textsKind:  {"['1017', '17']", "['zvm', '']", "splitByChar('1', '1017')"},
}

// expr writes an expression of a kind.
func (g *generator) expr(k kind, sc *scope, depth int) string {
	if depth <= 0 || g.chance(25) {
		return g.leaf(k, sc)
	}
	text := func() string { return g.expr(textKind, sc, depth-1) }
	number := func() string { return g.expr(numberKind, sc, depth-1) }
	condition := func() string { return g.expr(boolKind, sc, depth-1) }
	texts := func() string { return g.expr(textsKind, sc, depth-1) }
	same := func() string { return g.expr(k, sc, depth-1) }
	switch {
	case g.chance(10):
		return "if(" + condition() + ", " + same() + ", " + same() + ")"
	case g.chance(4):
		return "(" + condition() + " ? " + same() + " : " + same() + ")"
	case g.chance(3):
		return "coalesce(" + same() + ", " + same() + ")"
	case g.chance(3) && k != textsKind:
		return g.scalar(k, depth)
	case g.chance(12):
		if e := g.example(k, sc, depth); e != "" {
			return e
		}
	}
	switch k {
	case textKind:
		switch g.IntN(12) {
		case 0:
			return "concat(" + text() + ", " + text() + ")"
		case 1:
			return pick(g, "lower", "upper", "reverse", "base64Encode", "trim") + "(" + text() + ")"
		case 2:
			return "substring(" + text() + ", 1, " + pick(g, "1", "4", "100") + ")"
		case 3:
			return "toString(" + g.expr(kind(g.IntN(kinds)), sc, depth-1) + ")"
		case 4:
			return "arrayStringConcat(" + texts() + ", '-')"
		case 5:
			return "(" + text() + " || " + number() + ")"
		case 6:
			return "replaceRegexpAll(" + text() + ", '[0-9]', " + text() + ")"
		case 7:
			return "case when " + condition() + " then " + text() + " else " + text() + " end"
		case 8:
			return "arrayElement(" + texts() + ", " + pick(g, "1", "-1", "2") + ")"
		case 9:
			return "JSONExtractString(" + text() + ", 'a')"
		case 10:
			return "tupleElement((" + text() + ", " + number() + "), 1)"
		default:
			return "arrayFold((acc, x) -> acc || x, " + texts() + ", '')"
		}
	case numberKind:
		switch g.IntN(13) {
		case 0, 1:
			return "length(" + text() + ")"
		case 2:
			return pick(g, "toInt", "toFloat") + "(" + text() + ")"
		case 3: // fails on words
			return text() + "::int"
		case 4: // fails on zero
			return "intDiv(1000, " + number() + ")"
		case 5:
			return "(" + number() + pick(g, " + ", " - ", " * ") + number() + ")"
		case 6:
			return "arraySum(arrayMap(x -> length(x), " + texts() + "))"
		case 7:
			return "position(" + text() + ", " + text() + ")"
		case 8:
			return "arrayCount(" + g.lambda(sc, boolKind, depth-1) + ", " + texts() + ")"
		case 9:
			return "arrayReduce('" + pick(g, "sum", "max", "uniq", "count") + "', arrayMap(x -> length(x), " + texts() + "))"
		case 10:
			return "dateDiff('hour', " + g.expr(timeKind, sc, depth-1) + ", " + g.expr(timeKind, sc, depth-1) + ")"
		case 11:
			return "cityHash64(" + text() + ")"
		default:
			return "toUnixTimestamp(" + g.expr(timeKind, sc, depth-1) + ")"
		}
	case boolKind:
		return g.condition(sc, depth)
	case timeKind:
		switch g.IntN(6) {
		case 0:
			return pick(g, "toStartOfDay", "toStartOfMonth", "toStartOfHour") + "(" + g.expr(timeKind, sc, depth-1) + ")"
		case 1:
			return "(" + g.expr(timeKind, sc, depth-1) + " + interval " + pick(g, "1 day", "3 hour") + ")"
		case 2:
			return "parseDateTimeBestEffort(" + text() + ")" // fails on words
		case 3:
			return "toDateTime(" + text() + ")"
		default:
			return g.leaf(k, sc)
		}
	case uuidKind:
		if g.chance(20) {
			return "toUUID(" + text() + ")"
		}
		return g.leaf(k, sc)
	case textsKind:
		switch g.IntN(7) {
		case 0:
			return "arrayMap(" + g.lambda(sc, textKind, depth-1) + ", " + texts() + ")"
		case 1:
			return "arrayFilter(" + g.lambda(sc, boolKind, depth-1) + ", " + texts() + ")"
		case 2:
			return "splitByChar('1', " + text() + ")"
		case 3:
			return "[" + text() + ", " + text() + "]"
		case 4:
			return pick(g, "arraySort", "arrayDistinct", "arrayReverse", "arrayCompact") + "(" + texts() + ")"
		case 5:
			return "extractAll(" + text() + ", '[0-9]+')"
		default:
			return "arrayConcat(" + texts() + ", " + texts() + ")"
		}
	case jsonKind: // only read from
	}
	return g.leaf(k, sc)
}

// condition writes a boolean.
func (g *generator) condition(sc *scope, depth int) string {
	text := func() string { return g.expr(textKind, sc, depth-1) }
	condition := func() string { return g.expr(boolKind, sc, depth-1) }
	switch g.IntN(19) {
	case 0, 1, 2:
		k := pick(g, textKind, numberKind, timeKind, uuidKind)
		return g.expr(k, sc, depth-1) + pick(g, " = ", " != ", " < ", " >= ") + g.expr(k, sc, depth-1)
	case 3, 4:
		return "(" + condition() + " and " + condition() + ")"
	case 5:
		return "(" + condition() + " or " + condition() + ")"
	case 6:
		return "not (" + condition() + ")"
	case 7:
		return text() + pick(g, " like ", " ilike ", " not like ") + pick(g, "'zvm%'", "'%1%'", text())
	case 8:
		return text() + pick(g, " is null", " is not null")
	case 9:
		return text() + pick(g, " in ", " not in ") + pick(g, "('1017', '17', '3')", "["+text()+", "+text()+"]", "tuple("+text()+")")
	case 10, 11:
		return g.membership(sc, depth)
	case 12: // the project's number, in ways that the guard must not care about
		return g.projectCondition(sc)
	case 13:
		return "has(" + g.expr(textsKind, sc, depth-1) + ", " + text() + ")"
	case 14:
		return "arrayExists(" + g.lambda(sc, boolKind, depth-1) + ", " + g.expr(textsKind, sc, depth-1) + ")"
	case 16:
		return "(" + g.expr(uuidKind, sc, depth-1) + pick(g, " in", " not in") + " cohort " + pick(g, "5", "6", "7", "'fives'") + ")"
	case 17:
		if sc.events() {
			return "matchesAction(" + pick(g, tenantActions()...) + ")"
		}
		return condition()
	case 15:
		return "(" + g.expr(numberKind, sc, depth-1) + " between " + g.expr(numberKind, sc, depth-1) + " and " + g.expr(numberKind, sc, depth-1) + ")"
	default:
		return "match(" + text() + ", '" + pick(g, "^[0-9]+$", "zvm", ".*") + "')"
	}
}

// projectCondition writes what the guards must not care about.
func (g *generator) projectCondition(sc *scope) string {
	for _, o := range sc.operands {
		for _, c := range o.columns {
			if c.text == "team_id" && o.name != "" {
				id := o.name + ".team_id"
				return "(" + id + pick(g, " = 202", " in (201, 202)", " != 201", " > 0", " = 202 or 1 = 1", " = "+id) + ")"
			}
		}
	}
	return "1 = 1"
}

// membership writes IN with a subquery.
func (g *generator) membership(sc *scope, depth int) string {
	if depth < 2 {
		return "1 in (1, 2)"
	}
	k := pick(g, textKind, textKind, uuidKind, numberKind)
	sub, _ := g.plain(0, []kind{k})
	return g.expr(k, sc, depth-1) + pick(g, " in ", " in ", " not in ") + "(" + sub + ")"
}

// scalar writes a subquery of one value.
func (g *generator) scalar(k kind, depth int) string {
	if depth < 2 {
		return pick(g, constants[k]...)
	}
	from, sc := g.from(0)
	e := g.expr(k, sc, 1)
	if k == boolKind {
		return "(select countIf(" + e + ")" + from + g.where(sc) + ") > 3"
	}
	return "(select " + pick(g, "max", "min") + "(" + e + ")" + from + g.where(sc) + ")"
}

// lambda writes a lambda of one text.
func (g *generator) lambda(sc *scope, k kind, depth int) string {
	param := "x"
	if g.chance(20) {
		param = pick(g, shadows...)
	}
	inner := *sc
	inner.lambdas = append(slices.Clone(sc.lambdas), column{param, textKind}, column{param, textKind})
	inner.taken = maps.Clone(sc.taken)
	if inner.taken == nil {
		inner.taken = map[string]bool{}
	}
	inner.taken[param] = true
	return param + " -> " + g.expr(k, &inner, depth)
}

// leaf writes a column or a constant.
func (g *generator) leaf(k kind, sc *scope) string {
	var candidates []string
	for _, l := range sc.lambdas {
		if l.kind == k {
			candidates = append(candidates, l.text, l.text)
		}
	}
	for _, v := range g.values {
		if v.kind == k && g.chance(30) {
			candidates = append(candidates, v.text)
		}
	}
	for range 4 {
		if c := g.column(k, sc); c != "" {
			candidates = append(candidates, c)
		}
	}
	if len(candidates) == 0 || g.chance(8) {
		return pick(g, constants[k]...)
	}
	return pick(g, candidates...)
}

// column names a column of the tables in scope, empty when none that was looked at is of the kind.
func (g *generator) column(k kind, sc *scope) string {
	if len(sc.operands) == 0 {
		return ""
	}
	o := pick(g, sc.operands...)
	if len(o.columns) == 0 {
		return ""
	}
	c := pick(g, o.columns...)
	for range 6 {
		if c.kind == k || c.kind == jsonKind && k <= numberKind {
			break
		}
		c = pick(g, o.columns...)
	}
	name := c.text
	head, _, _ := strings.Cut(name, ".")
	bare := o.name == "" || !sc.joined && g.chance(40) && !sc.taken[head] && head != o.name
	if !bare {
		name = o.name + "." + name
	}
	switch {
	case c.kind == jsonKind && k == numberKind:
		return "toFloat(" + name + ".n)"
	case c.kind == jsonKind && k == textKind && g.chance(10):
		return pick(g, "toString("+name+")", "JSONExtractRaw(toString("+name+"), 'nested')")
	case c.kind == jsonKind && k == textKind:
		key := pick(g, keys...)
		if key == ".n" || key == ".flag" || key == ".at" {
			return "toString(" + name + key + ")"
		}
		return name + key
	case c.kind == jsonKind || c.kind != k:
		return ""
	}
	return name
}

// example takes a call from the examples of the functions, and puts what is in scope in the place of constants.
func (g *generator) example(k kind, sc *scope, depth int) string {
	list := g.examples[k]
	if len(list) == 0 {
		return ""
	}
	e, err := hogql.ParseExpr(pick(g, list...))
	if err != nil {
		panic(fmt.Sprintf("BUG: an example that does not parse: %v", err))
	}
	swapped := false
	out := hogql.RewriteExpr(e, func(e hogql.Expr) hogql.Expr {
		c, ok := e.(*hogql.Const)
		if !ok || !g.chance(50) {
			return e
		}
		var with string
		switch c.Value.(type) {
		case string:
			with = g.expr(textKind, sc, min(depth-1, 1))
		case int64:
			if g.chance(70) {
				return e
			}
			with = g.expr(numberKind, sc, 1)
		default:
			return e
		}
		replaced, err := hogql.ParseExpr(with)
		if err != nil {
			panic(fmt.Sprintf("BUG: the generator writes %s: %v", with, err))
		}
		swapped = true
		return replaced
	})
	if !swapped {
		return ""
	}
	return "(" + hogql.PrintExpr(out) + ")"
}

package engine_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// kind is what the generator knows of a value, so that most of what it writes makes sense to the engine.
type kind int

const (
	textKind kind = iota
	numberKind
	boolKind
	timeKind
	uuidKind
	textsKind     // an array of texts
	jsonKind      // only as what properties are read from
	kinds     = 6 // those that an expression can be asked for
)

// column is something in scope: its text, as a query names it without a table.
type column struct {
	text string
	kind kind
}

// operand is a table in FROM.
type operand struct {
	name    string // empty for a subquery without one
	columns []column
}

// scope is what an expression can name.
type scope struct {
	operands []operand
	lambdas  []column
	taken    map[string]bool // aliases of the SELECT, which hide columns
	joined   bool            // columns need the names of their tables
}

// events reports whether one of the tables may be that of events.
func (sc *scope) events() bool {
	return slices.ContainsFunc(sc.operands, func(o operand) bool {
		return slices.ContainsFunc(o.columns, func(c column) bool { return c.text == "elements_chain" })
	})
}

// generator writes random queries. The same seed gives the same query.
type generator struct {
	*rand.Rand
	tables   map[string][]column
	examples map[kind][]string
	names    int
	ctes     []operand
	values   []column // column CTEs
	// unstable is set when the answer may differ between two runs, or between two engines with the same rows.
	unstable bool
}

// library is what all generators share.
type library struct {
	tables   map[string][]column
	examples map[kind][]string
}

// newLibrary learns the tables from the schema, and calls of scalar functions from its examples.
func newLibrary(t *testing.T, db *schema.Database) *library {
	t.Helper()
	l := &library{tables: map[string][]column{}, examples: map[kind][]string{}}
	for name := range db.TableNames() {
		table, _ := db.Table(name)
		l.tables[name] = fieldsOf(db, table, 0)
	}
	for name := range schema.HeldNames() {
		held, ok := db.Holds(name)
		if !ok {
			continue
		}
		for _, f := range held.Fields {
			if k, ok := kindOf(f.Type.Kind); ok {
				l.tables[name] = append(l.tables[name], column{f.Name, k})
			}
		}
	}
	file, err := os.Open("../../compiler/schema/testdata/examples.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		name, text, ok := strings.Cut(lines.Text(), "\t")
		f, known := schema.LookupFunction(name)
		if !ok || !known || f.Aggregate || f.WindowOnly || f.Volatile || strings.Contains(text, "number") {
			continue
		}
		if k, ok := kindOf(f.Result.Kind); ok && f.Result.Like == 0 && f.Result.ElemOf == 0 {
			l.examples[k] = append(l.examples[k], text)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *library) generator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 31)), tables: l.tables, examples: l.examples}
}

func kindOf(k hogql.Kind) (kind, bool) {
	switch k {
	case hogql.String:
		return textKind, true
	case hogql.Int, hogql.Float:
		return numberKind, true
	case hogql.Bool:
		return boolKind, true
	case hogql.DateTime:
		return timeKind, true
	case hogql.UUID:
		return uuidKind, true
	case hogql.JSON:
		return jsonKind, true
	default:
		return 0, false
	}
}

// fieldsOf lists what can be read of a table, through its joins too.
func fieldsOf(db *schema.Database, table *schema.Table, depth int) []column {
	var names []string
	for name := range db.FieldNames(table) {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []column
	below := func(prefix string, columns []column) {
		for _, c := range columns {
			out = append(out, column{prefix + "." + c.text, c.kind})
		}
	}
	for _, name := range names {
		f, _ := db.Field(table, name)
		switch {
		case f.Join != nil:
			if other, ok := db.Table(f.Join.Table); ok && depth < 2 {
				below(name, fieldsOf(db, other, depth+1))
			}
		case f.Fields != nil:
			for i := range f.Fields {
				if k, ok := kindOf(f.Fields[i].Type.Kind); ok {
					out = append(out, column{name + "." + f.Fields[i].Name, k})
				}
			}
		case f.Type.Kind == hogql.ArrayKind && f.Type.Elem.Kind == hogql.String:
			out = append(out, column{name, textsKind})
		default:
			if k, ok := kindOf(f.Type.Kind); ok {
				out = append(out, column{name, k})
			}
		}
	}
	return out
}

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

// chance is true in p of 100 cases.
func (g *generator) chance(p int) bool { return g.IntN(100) < p }

func (g *generator) fresh(prefix string) string {
	g.names++
	return prefix + strconv.Itoa(g.names)
}

// shadows are names that mean something else too: columns, tables, what ClickHouse and its analyzer call things.
var shadows = []string{
	"events", "event", "properties", "timestamp", "distinct_id", "person", "person_id", "uuid", "number", "groups", "team",
	"person_properties", "group_properties", "_part", "_table", "_database", "_partition_id", "_part_offset", "_row_exists",
	"__table1", "__table2", "__grouping_set", "argMax", "person_distinct_id2", "version", "is_deleted", "_timestamp", "id", "key",
	"`e b`", "`we\\`ird`", "\"q\"\"q\"", "`a.b`", "`team_id `", "`events.team_id`", "`size0`", "count", "x", "y", "q",
}

// alias makes a name that the SELECT does not have yet.
func (g *generator) alias(taken map[string]bool) string {
	name := g.fresh("c")
	if g.chance(25) {
		name = pick(g, shadows...)
	}
	if taken[name] {
		name = g.fresh("d")
	}
	taken[name] = true
	return name
}

var setOperation = regexp.MustCompile(` (union|intersect|except) `)

// query writes a whole query: mostly one row of aggregates, which tells of every row below it and can be compared.
func (g *generator) query() string {
	with := ""
	if g.chance(8) {
		with = g.with()
	}
	depth := pick(g, 0, 0, 0, 1, 1, 2) // most are small, so that there can be many
	if g.chance(65) {
		return with + g.digest(depth)
	}
	text, _ := g.relation(depth)
	// The limit is of the whole: without it there would be a hundred rows, and of a set operation any hundred.
	if strings.HasPrefix(text, "(") || with != "" || strings.Contains(text, " limit ") || setOperation.MatchString(text) {
		text = "select * from (" + text + ") as whole"
	}
	return with + text + " limit 50000"
}

func (g *generator) with() string {
	var parts []string
	for range 1 + g.IntN(2) {
		if g.chance(25) {
			k := kind(g.IntN(kinds))
			name := g.fresh("v")
			parts = append(parts, g.expr(k, &scope{}, 1)+" as "+name)
			g.values = append(g.values, column{name, k})
			continue
		}
		text, columns := g.relation(1)
		name := g.fresh("w")
		if g.chance(20) {
			name = pick(g, "events", "person", "groups", "persons", "cte", "person_distinct_id2")
		}
		if slices.ContainsFunc(g.ctes, func(o operand) bool { return o.name == name }) {
			continue
		}
		parts = append(parts, name+" as ("+text+")")
		g.ctes = append(g.ctes, operand{name, columns})
	}
	if len(parts) == 0 {
		return ""
	}
	return "with " + strings.Join(parts, ", ") + " "
}

// digest writes a SELECT of aggregates without keys.
func (g *generator) digest(depth int) string {
	from, sc := g.from(depth)
	list := []string{"count()"}
	for range 1 + g.IntN(3) {
		e := g.expr(kind(g.IntN(kinds)), sc, 1+g.IntN(2))
		text := "toString(" + e + ")"
		list = append(list, pick(g,
			"sum(cityHash64("+text+"))", "uniqExact("+text+")", "max(length("+text+"))", "min(length("+text+"))",
			"sum(length("+text+"))", "cityHash64(toString(arraySort(groupArray("+text+"))))", "countIf("+text+" like '%z%')",
			"max("+text+")", "min("+text+")", "arraySort(groupUniqArray("+text+"))", "uniq("+text+")", "groupBitXor(cityHash64("+text+"))",
			"arraySum(arrayMap(z -> length(z), groupArray("+text+")))",
		))
	}
	return "select " + strings.Join(list, ", ") + from + g.where(sc) + g.ending(sc)
}

// where writes PREWHERE and WHERE, often none.
func (g *generator) where(sc *scope) string {
	text := ""
	if len(sc.operands) == 1 && g.chance(12) {
		text = " prewhere " + g.expr(boolKind, sc, 2)
	}
	if g.chance(55) {
		text += " where " + g.expr(boolKind, sc, 2)
	}
	return text
}

// ending writes HAVING for a SELECT of aggregates.
func (g *generator) ending(sc *scope) string {
	if g.chance(10) {
		return " having count() " + pick(g, ">= 0", "> 2", "< 100000") + pick(g, "", " or max("+g.expr(textKind, sc, 1)+") != ''")
	}
	return ""
}

// relation writes a query whose columns all have names, and tells them.
func (g *generator) relation(depth int) (string, []column) {
	if depth > 0 && g.chance(14) {
		return g.set(depth - 1)
	}
	want := make([]kind, 1+g.IntN(4))
	for i := range want {
		want[i] = kind(g.IntN(kinds))
	}
	switch {
	case g.chance(8):
		return g.star(depth)
	case g.chance(25):
		return g.grouped(depth, want)
	}
	return g.plain(depth, want)
}

// set writes a set operation over SELECTs of the same columns.
func (g *generator) set(depth int) (string, []column) {
	want := make([]kind, 1+g.IntN(3))
	for i := range want {
		want[i] = pick(g, textKind, textKind, numberKind, uuidKind, textsKind)
	}
	text, columns := g.plain(depth, want)
	operator := pick(g, "union all", "union all", "union distinct", "union", "intersect", "except", "intersect distinct")
	for range 1 + g.IntN(2) {
		next, _ := g.plain(depth, want)
		if g.chance(20) {
			next = "(" + next + ")"
		}
		text += " " + operator + " " + next
		if g.chance(30) {
			operator = pick(g, "union all", "union distinct", "intersect", "except")
		}
	}
	return text, columns
}

// plain writes a SELECT of expressions.
func (g *generator) plain(depth int, want []kind) (string, []column) {
	from, sc := g.from(depth)
	text, columns := g.list(sc, want, 2)
	distinct := pick(g, "", "", "", "", "distinct ")
	return "select " + distinct + text + from + g.where(sc) + g.order(sc, columns), columns
}

func (g *generator) list(sc *scope, want []kind, depth int) (string, []column) {
	var parts []string
	var columns []column
	for _, k := range want {
		name := g.alias(sc.taken)
		e := g.expr(k, sc, depth)
		if g.chance(4) {
			e = g.window(sc)
			k = numberKind
		}
		parts = append(parts, e+" as "+name)
		columns = append(columns, column{name, k})
	}
	return strings.Join(parts, ", "), columns
}

func (g *generator) window(sc *scope) string {
	of := pick(g, "count()", "sum("+g.expr(numberKind, sc, 1)+")", "max(length("+g.expr(textKind, sc, 1)+"))", "dense_rank()", "rank()", "row_number()")
	if strings.HasPrefix(of, "row_number") {
		g.unstable = true
	}
	if strings.Contains(of, "rank") || strings.HasPrefix(of, "row") || g.chance(40) {
		return of + " over (partition by " + g.expr(textKind, sc, 1) + " order by " + g.expr(textKind, sc, 1) + ")"
	}
	return of + " over (partition by " + g.expr(textKind, sc, 1) + ")"
}

// order writes what ends a SELECT. A limit makes the answer depend on the order of rows.
func (g *generator) order(sc *scope, columns []column) string {
	if g.chance(75) {
		return ""
	}
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = strconv.Itoa(i + 1)
		if g.chance(30) {
			names[i] += pick(g, " desc", " asc")
		}
	}
	text := " order by " + strings.Join(names, ", ") // a total order of what is seen
	switch g.IntN(9) {
	case 0, 1:
		g.unstable = true
		return fmt.Sprintf("%s limit %d by %s limit %d", text, 1+g.IntN(3), g.expr(textKind, sc, 1), 1+g.IntN(500))
	case 2, 3:
		return fmt.Sprintf("%s limit %d offset %d", text, 1+g.IntN(50), g.IntN(10))
	case 4:
		return fmt.Sprintf("%s limit %d with ties", text, 1+g.IntN(20))
	case 5:
		g.unstable = true
		return fmt.Sprintf(" order by %s limit %d", g.expr(pick(g, textKind, numberKind), sc, 2), 1+g.IntN(20))
	}
	return text
}

// grouped writes a SELECT with GROUP BY.
func (g *generator) grouped(depth int, want []kind) (string, []column) {
	from, sc := g.from(depth)
	where := g.where(sc)
	var keys []string
	for range 1 + g.IntN(2) {
		key := g.expr(pick(g, textKind, numberKind, timeKind, uuidKind), sc, 2)
		if strings.Trim(key, "-0123456789") == "" { // a number means a column by its place
			key = "toString(" + key + ")"
		}
		keys = append(keys, key)
	}
	var parts []string
	var columns []column
	add := func(e string, k kind) {
		name := g.alias(sc.taken)
		parts = append(parts, e+" as "+name)
		columns = append(columns, column{name, k})
	}
	for _, key := range keys {
		add("toString("+key+")", textKind)
	}
	for range want {
		switch g.IntN(6) {
		case 0:
			add("count()", numberKind)
		case 1:
			add("uniq("+g.expr(textKind, sc, 2)+")", numberKind)
		case 2:
			add(pick(g, "max", "min")+"("+g.expr(textKind, sc, 2)+")", textKind)
		case 3:
			add("arraySort(groupArray("+g.expr(textKind, sc, 2)+"))", textsKind)
		case 4:
			add("countIf("+g.expr(boolKind, sc, 2)+")", numberKind)
		case 5:
			g.unstable = true
			add(pick(g, "any", "anyLast")+"("+g.expr(textKind, sc, 2)+")", textKind)
		}
	}
	by := strings.Join(keys, ", ")
	switch g.IntN(12) {
	case 0:
		by = "rollup(" + by + ")"
	case 1:
		by = "cube(" + by + ")"
	case 2:
		by = "grouping sets ((" + by + "), ())"
	case 3:
		by = "all"
	}
	if g.chance(8) {
		by += " with totals"
	}
	return "select " + strings.Join(parts, ", ") + from + where + " group by " + by + g.ending(sc), columns
}

// star writes a SELECT of all columns.
func (g *generator) star(depth int) (string, []column) {
	table := g.table()
	if depth > 1 && len(g.ctes) > 0 && g.chance(30) {
		cte := pick(g, g.ctes...)
		return "select * from " + cte.name, cte.columns
	}
	if slices.ContainsFunc(g.ctes, func(o operand) bool { return o.name == table }) {
		table = "raw_groups"
	}
	var columns []column
	for _, c := range g.tables[table] {
		if !strings.Contains(c.text, ".") && c.text != "team_id" && c.text != "event_person_id" {
			columns = append(columns, c)
		}
	}
	form := pick(g, "*", "*", "t.*", "columns('.*')")
	sc := &scope{operands: []operand{{"t", g.tables[table]}}, taken: map[string]bool{}}
	return "select " + form + " from " + table + " as t" + g.where(sc), columns
}

func (g *generator) table() string {
	if g.chance(50) {
		return "events"
	}
	names := make([]string, 0, len(g.tables))
	for name := range g.tables {
		names = append(names, name)
	}
	slices.Sort(names)
	return pick(g, names...)
}

// from writes FROM with what belongs to it.
func (g *generator) from(depth int) (string, *scope) {
	sc := &scope{taken: map[string]bool{}}
	if g.chance(3) {
		return "", sc
	}
	joins := 0
	for depth > 0 && joins < 3 && g.chance(27) {
		joins++
	}
	sc.joined = joins > 0
	text := " from " + g.operand(depth, sc, joins == 0)
	for range joins {
		text += g.join(depth-1, sc)
	}
	if g.chance(8) {
		name := g.alias(sc.taken)
		text += pick(g, " array join ", " left array join ") + g.expr(textsKind, sc, 1) + " as " + name
		sc.lambdas = append(sc.lambdas, column{name, textKind})
	}
	return text, sc
}

func (g *generator) operand(depth int, sc *scope, single bool) string {
	free := func(name string) string {
		for slices.ContainsFunc(sc.operands, func(o operand) bool { return o.name == name }) {
			name = g.fresh("t")
		}
		return name
	}
	switch {
	case depth > 0 && len(g.ctes) > 0 && g.chance(40):
		cte := pick(g, g.ctes...)
		name := free(pick(g, cte.name, g.fresh("t")))
		sc.operands = append(sc.operands, operand{name, cte.columns})
		return cte.name + " as " + name
	case depth > 0 && g.chance(24):
		text, columns := g.relation(depth - 1)
		if single && g.chance(15) {
			sc.operands = append(sc.operands, operand{"", columns})
			return "(" + text + ")"
		}
		name := free(pick(g, g.fresh("t"), pick(g, shadows...)))
		sc.operands = append(sc.operands, operand{name, columns})
		return "(" + text + ") as " + name
	case g.chance(5):
		name := free(pick(g, "n", "events", "numbers"))
		sc.operands = append(sc.operands, operand{name, []column{{"number", numberKind}}})
		return fmt.Sprintf("numbers(%d) as %s", 1+g.IntN(20), name)
	}
	table := g.table()
	if cte := slices.IndexFunc(g.ctes, func(o operand) bool { return o.name == table }); cte >= 0 {
		name := free(table)
		sc.operands = append(sc.operands, operand{name, g.ctes[cte].columns})
		return table + " as " + name
	}
	name := table[strings.LastIndexByte(table, '.')+1:]
	if g.chance(60) {
		name = pick(g, "e", "a", "b", "t", pick(g, shadows...), pick(g, "events", "person", "distinct_id", "groups"))
	}
	name = free(name)
	sc.operands = append(sc.operands, operand{name, g.tables[table]})
	sample := ""
	if table == "events" && g.chance(6) {
		sample = pick(g, " sample 1/2", " sample 0.3", " sample 1/3 offset 1/3")
	}
	return table + " as " + name + sample
}

// key writes what a join can go by: an expression over columns.
func (g *generator) key(k kind, sc *scope) string {
	for range 20 {
		if c := g.column(k, sc); c != "" {
			switch {
			case k == textKind && g.chance(20):
				return pick(g, "lower("+c+")", "substring(concat('1', "+c+"), 1, 3)", "("+c+"::int + 0)::text")
			case k == numberKind:
				return "toFloat(" + c + ")" + pick(g, "", " + 1")
			}
			return c
		}
	}
	return g.expr(k, sc, 1)
}

func (g *generator) join(depth int, sc *scope) string {
	if g.chance(12) {
		return pick(g, ", ", " cross join ") + g.operand(depth, sc, false)
	}
	before := len(sc.operands)
	kindOfJoin := pick(g, "join", "join", "inner join", "left join", "left join", "right join", "full join", "any left join", "left any join",
		"left semi join", "left anti join", "right anti join", "right semi join", "any join", "all left join", "asof join", "asof left join")
	right := g.operand(depth, sc, false)
	if before == len(sc.operands) {
		return " cross join " + right
	}
	left := &scope{operands: sc.operands[:before], taken: sc.taken, joined: true}
	joined := &scope{operands: sc.operands[before:], taken: sc.taken, joined: true}
	k := pick(g, textKind, textKind, uuidKind, numberKind)
	on := g.key(k, left) + " = " + g.key(k, joined)
	switch {
	case strings.HasPrefix(kindOfJoin, "asof"):
		g.unstable = true
		on += " and " + g.expr(timeKind, left, 0) + " >= " + g.expr(timeKind, joined, 0)
	case strings.Contains(kindOfJoin, "any"):
		g.unstable = true
	case strings.Contains(kindOfJoin, "semi"):
		g.unstable = true // which partner's columns are seen is not defined
	case g.chance(25):
		on += pick(g, " and ", " and ", " and ", " or ") + g.expr(boolKind, &scope{operands: sc.operands, taken: sc.taken, joined: true}, 1)
	case g.chance(6):
		on = pick(g, "1 = 1", "1 = 0", "1")
	}
	if before == 1 && g.chance(8) {
		for _, c := range sc.operands[0].columns {
			if slices.Contains(sc.operands[1].columns, c) && c.kind != jsonKind && !strings.Contains(c.text, ".") {
				return " " + kindOfJoin + " " + right + " using (" + c.text + ")"
			}
		}
	}
	return " " + kindOfJoin + " " + right + " on " + on
}

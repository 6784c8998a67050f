package resolve

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// scope is what names mean in one SELECT.
type scope struct {
	r       *resolver
	env     *environment
	tree    *resolved.Select
	sources []source
	using   map[string]source // columns of USING, and the table that their unqualified names refer to; nil after a FULL JOIN
	unseen  unseen            // set in the condition of a join
	aliases frame             // of the SELECT itself
	frame   *frame            // the innermost lambda, or aliases
	names   *names            // the aliases in the resolved SELECT
	tables  names             // the names of its tables
	lambdas lambdaNames
	outputs []*column // set when the select list is resolved
	windows []*hogql.NamedWindow

	clause     string // the clause being resolved, if it allows no aggregates; otherwise empty
	aggregate  string // the aggregate whose arguments are being resolved
	inWindow   bool   // the definition of a window is being resolved
	turn       int    // index in the select list of the expression being resolved; the length of the list in the clauses after it
	aggregates int    // how many have been seen
	grouped    bool
	byProperty bool // a property is among the keys of GROUP BY
}

// frame holds the names that a SELECT or a lambda defines.
type frame struct {
	outer  *frame
	byName smallMap[*alias]
	params []*resolved.LambdaParam
	shown  []string       // the names of the params in the query
	places map[string]int // of the first param of each name; used if there are many
}

// alias returns the alias that the frame itself defines for a name; nil for none.
func (fr *frame) alias(name string) *alias {
	if a := fr.byName.at(name); a != nil {
		return *a
	}
	return nil
}

// place returns the index of a param by its name in the query; -1 for none.
func (fr *frame) place(name string) int {
	if len(fr.shown) <= indexAbove {
		return slices.Index(fr.shown, name)
	}
	if fr.places == nil {
		fr.places = make(map[string]int, len(fr.shown))
		for i, shown := range slices.Backward(fr.shown) {
			fr.places[shown] = i
		}
	}
	if i, ok := fr.places[name]; ok {
		return i
	}
	return -1
}

// alias is a name for an expression of the same SELECT.
type alias struct {
	name    string
	node    *hogql.Alias
	turn    int    // index in the select list that it is written in; the length of the list for the clauses after it
	home    *frame // what its expression sees
	printed string
	state   aliasState
	value   resolved.Expr // set once it is defined
	typ     hogql.Type
	grouped bool  // contains an aggregate
	window  *bool // whether it is the result of a window function; nil if not computed yet
}

type aliasState uint8

const (
	aliasNew aliasState = iota
	aliasOpen
	aliasDefined
)

// source is one entry of FROM.
type source interface {
	// called returns the name of the table in the query; empty if it has none.
	called() string
	// find finds a column by its name, or a table below a table.
	find(name string) (place, bool)
	// columns returns the columns of *.
	columns() []place
	// each yields the names that find knows.
	each(yield func(string) bool)
}

// place is what a chain of names leads to: a field of a table, or a column of a subquery.
type place struct {
	name  string
	table *tableSource
	field *schema.Field
	part  *schema.Field // of the table, the part that field is in; nil for the table itself
	query *querySource
	index int // of the column in query

	numbers *numbersSource
	missing bool // a column of a table that does not exist
}

// collectAliases registers the aliases of a SELECT, wherever they are in it.
func (s *scope) collectAliases(sel *hogql.Select) {
	own := *sel
	own.With, own.From, own.ArrayJoin, own.Columns = nil, nil, nil, nil
	v := s.aliasVisitor(&s.aliases)
	for i, c := range sel.Columns {
		s.turn = i
		v.WalkExpr(c)
	}
	s.turn = len(sel.Columns)
	v.Query = func(q hogql.Query) bool { return q == &own }
	v.WalkQuery(&own)
}

// aliasVisitor returns a visitor that registers aliases in f, except those in subqueries and lambdas.
func (s *scope) aliasVisitor(f *frame) *hogql.Visitor {
	return &hogql.Visitor{
		Expr: func(e hogql.Expr) bool {
			if a, ok := e.(*hogql.Alias); ok {
				s.register(f, a)
			}
			return !isWritten[*hogql.Lambda](e) && !isWritten[*hogql.Subquery](e)
		},
		Query: func(hogql.Query) bool { return false },
	}
}

func (s *scope) register(f *frame, e *hogql.Alias) {
	name := e.Name.Text
	if strings.EqualFold(name, schema.ProjectColumn) {
		s.r.mistakes.Addf(diag.SyntaxError, e.Name.Pos, `"%s" cannot be an alias or identifier, as it's a reserved keyword`, name)
		return
	}
	if known := f.alias(name); known != nil {
		if known.node != e {
			s.r.mistake(e.Name.Pos, "Cannot redefine an alias with the name: %s", name)
		}
		return
	}
	s.put(f, &alias{name: name, node: e, turn: s.turn, home: f, printed: s.aliasName(name)})
}

// unique returns an unused name for a column of the resolved SELECT, with characters that are valid in every ClickHouse name; names for people are
// not printed.
func (s *scope) unique(name string) string {
	if s.names == nil {
		s.names = new(names)
	}
	return s.names.unique(name)
}

// uniqueTable returns an unused name for a table in FROM.
func (s *scope) uniqueTable(name string) string {
	if name == "" {
		name = "q"
	}
	return s.tables.unique(name)
}

// define resolves the expression of an alias, once.
func (s *scope) define(a *alias) resolved.Expr {
	if a.state == aliasDefined {
		return a.value
	}
	a.state = aliasOpen
	clause, aggregate, inner, seen, inWindow, turn := s.clause, s.aggregate, s.frame, s.aggregates, s.inWindow, s.turn
	s.clause, s.aggregate, s.frame, s.inWindow, s.turn = "", "", a.home, false, a.turn
	a.value = s.expr(a.node.X)
	a.typ = typeOf(a.value)
	a.grouped = s.aggregates > seen
	s.clause, s.aggregate, s.frame, s.inWindow, s.turn = clause, aggregate, inner, inWindow, turn
	a.state = aliasDefined
	return a.value
}

// reference returns a use of an alias. A plain column is written again instead, so that conditions on it reach the table.
func (s *scope) reference(a *alias, at hogql.Span) resolved.Expr {
	value := a.value
	if a.state != aliasDefined {
		value = s.define(a)
	}
	if a.grouped {
		s.sawAggregate(a.name, at)
	}
	if read := bare(value); is[*resolved.Column](read) || is[*resolved.LambdaParam](read) {
		return value
	}
	return &resolved.AliasRef{Pos: at, Name: a.printed, Type: a.typ, Const: constantOf(value)}
}

// sawAggregate counts an aggregate, or refuses it where none is allowed.
func (s *scope) sawAggregate(name string, at hogql.Span) {
	s.aggregates++
	switch {
	case s.aggregate != "":
		s.r.mistake(at, "Aggregation '%s' cannot be nested inside another aggregation '%s'.", name, s.aggregate)
	case s.clause != "":
		s.r.mistake(at, "Aggregation '%s' cannot be used in %s", name, s.clause)
	}
}

// longestChain is the longest path that a chain of names may follow into a document. ClickHouse fails on thousands.
const longestChain = 256

// field resolves a chain of names.
func (s *scope) field(f *hogql.Field) resolved.Expr {
	if s.probed(f) {
		return unfinished(f)
	}
	if len(f.Chain) > longestChain {
		s.r.mistake(f.Pos, "The query has a chain of more than %d names", longestChain)
		return &resolved.Const{Pos: f.Pos}
	}
	if e, ok := s.lookup(f, s.frame); ok {
		return e
	}
	s.unknown(f)
	return &resolved.Const{Pos: f.Pos}
}

// lookup finds the meaning of a chain: a lambda parameter, a column of a table that the chain names, an alias, a column, a column CTE, or a global.
func (s *scope) lookup(f *hogql.Field, from *frame) (resolved.Expr, bool) {
	if p := s.param(f, from); p != nil {
		return s.below(p, f.Chain[1:], f.Pos), true
	}
	if p, rest, ok := s.qualified(f.Chain); ok {
		return s.read(p, rest, f.Pos), true
	}
	head := f.Chain[0].Text
	if a := s.alias(head, from); a != nil {
		if len(f.Chain) > 1 {
			if doc := s.documentOfAlias(a); doc != nil {
				return s.r.property(doc.with(f.Chain[1:]), typedValue, f.Pos), true
			}
		}
		return s.below(s.reference(a, f.Pos), f.Chain[1:], f.Pos), true
	}
	if p, n := s.unqualified(f.Chain[0]); n > 0 {
		if n > 1 && !p.missing {
			s.r.mistake(f.Pos, "Ambiguous query. Found multiple sources for field: %s", head)
		}
		return s.read(p, f.Chain[1:], f.Pos), true
	}
	if env := s.r.find(s.env, head); env != nil && env.value != nil {
		return s.columnCTE(env, f), true
	}
	return s.global(f)
}

// global finds the constant that the request gives for a chain.
func (s *scope) global(f *hogql.Field) (resolved.Expr, bool) {
	if s.r.global == nil {
		return nil, false
	}
	value, found, err := s.r.global(f.Chain)
	if err != nil {
		s.r.mistake(f.Pos, "Unable to resolve field: %s: %v", hogql.ShortText(f), err)
	}
	return &resolved.Const{Pos: f.Pos, Value: value}, found
}

// param finds a lambda parameter by the first name of a chain.
func (s *scope) param(f *hogql.Field, from *frame) resolved.Expr {
	for fr := from; fr != nil; fr = fr.outer {
		s.r.spend.Work(1)
		if i := fr.place(f.Chain[0].Text); i >= 0 {
			p := *fr.params[i]
			p.Pos = f.Pos
			return &p
		}
		if a := fr.alias(f.Chain[0].Text); a != nil && a.state != aliasOpen {
			return nil // a nearer alias hides the parameter
		}
	}
	return nil
}

// alias finds an alias that is not currently being defined: inside its own definition, a name means the column. It also does so before the definition,
// if there is such a column, and in the definition of a window if the alias is the result of one.
func (s *scope) alias(name string, from *frame) *alias {
	for fr := from; fr != nil; fr = fr.outer {
		a := fr.alias(name)
		if a == nil || a.state == aliasOpen || s.inWindow && a.overWindow() || s.ahead(a) {
			continue
		}
		return a
	}
	return nil
}

// ahead reports whether the name of an alias still means a column, because the alias comes later.
func (s *scope) ahead(a *alias) bool {
	if a.state != aliasNew || a.turn < s.turn {
		return false
	}
	_, columns := s.unqualified(hogql.Name{Text: a.name})
	return columns > 0
}

// overWindow reports whether the alias holds the result of a window function.
func (a *alias) overWindow() bool {
	if a.window != nil {
		return *a.window
	}
	found := false
	if a.node != nil {
		hogql.WalkExpr(a.node.X, func(e hogql.Expr) bool {
			c, ok := e.(*hogql.Call)
			found = found || ok && c.Over != nil
			return !found && !isWritten[*hogql.Subquery](e)
		})
	}
	a.window = &found
	return found
}

// qualified finds a column of the table named by the first name of a chain.
func (s *scope) qualified(chain []hogql.Name) (place, []hogql.Name, bool) {
	if len(chain) < 2 {
		return place{}, nil, false
	}
	for _, src := range s.sources {
		if src.called() == chain[0].Text && src.called() != "" {
			if p, ok := src.find(chain[1].Text); ok {
				return p, chain[2:], true
			}
		}
	}
	return place{}, nil, false
}

// unqualified finds a column by its bare name in any table, and returns how many there are.
func (s *scope) unqualified(name hogql.Name) (place, int) {
	if src := s.using[name.Text]; src != nil {
		p, _ := src.find(name.Text)
		return p, 1
	}
	var found place
	n := 0
	for _, src := range s.sources {
		if p, ok := src.find(name.Text); ok {
			if n++; n == 1 {
				found = p
			}
		}
	}
	return found, n
}

// read returns the value at a place, followed by the rest of a chain.
func (s *scope) read(p place, rest []hogql.Name, at hogql.Span) resolved.Expr {
	for p.table != nil && !p.field.IsColumn() {
		if len(rest) == 0 {
			s.r.mistake(at, "Can't select a table when a column is expected: %s. Select one of its columns, such as %s", p.name, p.example())
			return &resolved.Const{Pos: at}
		}
		next, ok := p.below(rest[0].Text)
		if !ok {
			s.r.missing(rest[0].Text, nameAt(rest[0], at), p.fieldNames)
			return &resolved.Const{Pos: at}
		}
		p, rest = next, rest[1:]
	}
	if doc := p.document(); doc != nil {
		return s.r.property(doc.with(rest), typedValue, at)
	}
	return s.below(s.r.zoned(p.value(at), p.zone(s.r)), rest, at)
}

// below returns the value that the rest of a chain leads to, starting at a value.
func (s *scope) below(e resolved.Expr, rest []hogql.Name, at hogql.Span) resolved.Expr {
	for _, n := range rest {
		e = s.member(e, n, at)
	}
	return e
}

// columnCTE replaces the name of a column CTE by its expression.
func (s *scope) columnCTE(env *environment, f *hogql.Field) resolved.Expr {
	if len(f.Chain) > 1 {
		s.r.mistake(f.Pos, "Cannot access fields on CTE %s yet", f.Chain[0].Text)
		return &resolved.Const{Pos: f.Pos}
	}
	outer, fr := s.env, s.frame
	s.env = env.outer
	e := s.expr(env.value)
	s.env, s.frame = outer, fr
	return e
}

// unknown reports a chain without a meaning.
func (s *scope) unknown(f *hogql.Field) {
	name := f.Chain[0].Text
	for _, src := range s.sources {
		if src.called() != name {
			continue
		}
		if len(f.Chain) == 1 {
			s.r.mistake(f.Pos, "Can't select a table when a column is expected: %s", name)
		} else {
			s.r.missing(f.Chain[1].Text, nameAt(f.Chain[1], f.Pos), src.each)
		}
		return
	}
	for _, src := range s.unseen.sources {
		if _, has := src.find(name); has && len(f.Chain) == 1 || src.called() == name && len(f.Chain) > 1 {
			s.r.mistake(f.Pos, "Unable to resolve field: %s: %s", name, s.unseen.why)
			return
		}
	}
	if hint, fix := f.Chain[0].SingleQuotes(); hint != "" && len(f.Chain) == 1 {
		s.r.mistakes.Add(&diag.Error{
			Code: diag.QueryError, Span: nameAt(f.Chain[0], f.Pos), Detail: "Unable to resolve field: " + name, Hint: hint, Fix: fix,
		})
		return
	}
	s.r.unresolved(name, nameAt(f.Chain[0], f.Pos), func(yield func(string) bool) {
		for _, src := range s.sources {
			if len(f.Chain) > 1 && !yield(src.called()) {
				return
			}
			for candidate := range src.each {
				if !yield(candidate) {
					return
				}
			}
		}
		for fr := s.frame; fr != nil; fr = fr.outer {
			for _, shown := range fr.shown {
				if !yield(shown) {
					return
				}
			}
			for _, e := range fr.byName.entries {
				if !yield(e.key) {
					return
				}
			}
		}
	})
}

// lambda resolves a lambda whose parameters have the given types, as far as they are known.
func (s *scope) lambda(l *hogql.Lambda, types []hogql.Type) *resolved.Lambda {
	fr := &frame{outer: s.frame, shown: l.Params}
	out := &resolved.Lambda{Pos: l.Pos, Params: make([]string, len(l.Params))}
	for i, name := range l.Params {
		if strings.EqualFold(name, schema.ProjectColumn) {
			s.r.mistakes.Addf(diag.SyntaxError, l.Pos, `"%s" cannot be an alias or identifier, as it's a reserved keyword`, name)
		}
		p := &resolved.LambdaParam{Name: s.paramName(name)}
		out.Params[i] = p.Name
		if i < len(types) {
			p.Type = types[i]
		}
		fr.params = append(fr.params, p)
	}
	s.aliasVisitor(fr).WalkExpr(l.Body)
	s.frame = fr
	out.Body = s.expr(l.Body)
	s.frame = fr.outer
	return out
}

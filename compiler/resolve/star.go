package resolve

import (
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/internal/pattern"
)

// item is one column of an asterisk.
type item struct {
	name  string
	value resolved.Expr
	from  *property
}

// pick is one column of an asterisk or COLUMNS, before it is read.
type pick struct {
	src         source
	place       place
	replacement hogql.Expr // its replacement in REPLACE
}

// star resolves *, t.* and COLUMNS(…); ok reports whether e is one of these.
func (s *scope) star(e hogql.Expr) (items []item, ok bool) {
	chosen, ok := s.choices(e)
	for _, c := range chosen {
		if c.replacement != nil {
			items = append(items, item{name: c.place.name, value: s.expr(c.replacement)})
			continue
		}
		items = append(items, s.item(c.place, e.At()))
	}
	return items, ok
}

func (s *scope) choices(e hogql.Expr) (chosen []pick, ok bool) {
	if a, ok := e.(*hogql.Star); ok {
		return s.asterisk(a), true
	}
	if c, ok := e.(*hogql.ColumnsMatching); ok {
		return s.matching(c), true
	}
	return nil, false
}

// isSpread reports whether an argument is *COLUMNS(…), which is replaced by several.
func isSpread(e hogql.Expr) bool {
	if a, ok := e.(*hogql.Star); ok {
		return a.Spread
	}
	c, ok := e.(*hogql.ColumnsMatching)
	return ok && c.Spread
}

// spread inserts the columns of *COLUMNS(…) into the arguments of a call.
func (s *scope) spread(args []hogql.Expr) []hogql.Expr {
	if !slices.ContainsFunc(args, isSpread) {
		return args
	}
	var out []hogql.Expr
	for _, arg := range args {
		if !isSpread(arg) {
			out = append(out, arg)
			continue
		}
		chosen, _ := s.choices(arg)
		for _, c := range chosen {
			out = append(out, c.written(arg.At()))
		}
	}
	return out
}

// written returns the expression by which a query would name the column.
func (c pick) written(at hogql.Span) hogql.Expr {
	if c.replacement != nil {
		return c.replacement
	}
	var chain []hogql.Name
	if called := c.src.called(); called != "" {
		chain = append(chain, hogql.Name{Pos: at, Text: called, Quoted: true})
	}
	return &hogql.Field{Pos: at, Chain: append(chain, hogql.Name{Pos: at, Text: c.place.name, Quoted: true})}
}

func (s *scope) matching(e *hogql.ColumnsMatching) []pick {
	columns := s.pattern(e)
	if columns == nil {
		return nil
	}
	if len(s.sources) == 0 {
		s.r.mistake(e.Pos, "Cannot use COLUMNS when there are no tables in the query")
		return nil
	}
	var out []pick
	for _, src := range s.sources {
		for _, p := range src.columns() {
			s.r.spend.Work(stepsPerMatch)
			if columns.MatchString(p.name) {
				s.r.spend.Columns(1)
				out = append(out, pick{src: src, place: p})
			}
		}
	}
	if len(out) == 0 && !s.missingTable() {
		s.r.mistake(e.Pos, "No columns matched the COLUMNS('%s') expression", e.Pattern)
	}
	return out
}

// missingTable reports whether FROM names a table that does not exist, so that its columns are unknown.
func (s *scope) missingTable() bool {
	return slices.ContainsFunc(s.sources, func(src source) bool {
		_, missing := src.(*missingSource)
		return missing
	})
}

// stepsPerMatch is roughly the cost of matching a pattern against a column name.
const stepsPerMatch = 16

// The bounds on a pattern of COLUMNS, which keep its compiled form small: a few characters can take a hundred megabytes.
const (
	maxPattern       = 256   // bytes
	maxPatternStates = 5_000 // after expanding its repetitions
)

// pattern compiles the pattern of COLUMNS; nil after a mistake.
func (s *scope) pattern(e *hogql.ColumnsMatching) *regexp.Regexp {
	if len(e.Pattern) > maxPattern {
		s.r.mistake(e.Pos, "The regular expression in COLUMNS is longer than %d bytes", maxPattern)
		return nil
	}
	parsed, err := syntax.Parse(e.Pattern, syntax.Perl)
	if err != nil {
		s.r.mistake(e.Pos, "COLUMNS() has an invalid regex pattern: %s", e.Pattern)
		return nil
	}
	n := pattern.States(parsed, maxPatternStates)
	if n > maxPatternStates {
		s.r.mistake(e.Pos, "The regular expression in COLUMNS is too large: it has more than %d states", maxPatternStates)
		return nil
	}
	s.r.spend.Nodes(n)
	compiled, err := regexp.Compile(e.Pattern)
	if err != nil {
		s.r.mistake(e.Pos, "COLUMNS() has an invalid regex pattern: %s", e.Pattern)
		return nil
	}
	return compiled
}

func (s *scope) item(p place, at hogql.Span) item {
	out := item{name: p.name, value: s.read(p, nil, at)}
	if d := p.document(); d != nil {
		out.from = d
	}
	return out
}

// starred finds the one table that an asterisk refers to; nil after a mistake.
func (s *scope) starred(table []hogql.Name, at hogql.Span) source {
	if len(table) > 0 {
		name := dotted(table)
		for _, src := range s.sources {
			if src.called() == name {
				return src
			}
		}
		s.r.unresolved(name, chainAt(table, at), func(yield func(string) bool) {
			for _, src := range s.sources {
				if !yield(src.called()) {
					return
				}
			}
		})
		return nil
	}
	switch len(s.sources) {
	case 0:
		s.r.mistake(at, "Cannot use '*' when there are no tables in the query")
		return nil
	case 1:
		return s.sources[0]
	}
	s.r.mistake(at, "Cannot use '*' without table name when there are multiple tables in the query")
	return nil
}

// asterisk returns the columns of *: of one table, or of all tables if it excludes or replaces some.
func (s *scope) asterisk(e *hogql.Star) []pick {
	sources := s.sources
	if !e.Columns || len(e.Table) > 0 || len(sources) < 2 {
		src := s.starred(e.Table, e.Pos)
		if src == nil {
			return nil
		}
		sources = []source{src}
	}
	if len(e.Exclude) == 0 && len(e.Replace) == 0 {
		return s.all(sources)
	}
	chosen := s.without(e, sources)
	s.replace(e, sources, chosen)
	s.r.spend.Columns(len(chosen))
	return chosen
}

// all returns the columns of tables.
func (s *scope) all(sources []source) []pick {
	var out []pick
	for _, src := range sources {
		columns := src.columns()
		s.r.spend.Columns(len(columns))
		for _, p := range columns {
			out = append(out, pick{src: src, place: p})
		}
	}
	return out
}

// exclusion is a name in EXCLUDE: a column of one table, or of any table.
type exclusion struct{ table, column string }

// without returns the columns of tables that are not named in EXCLUDE.
func (s *scope) without(e *hogql.Star, sources []source) []pick {
	left := map[exclusion]bool{}
	for _, chain := range e.Exclude {
		last := len(chain) - 1
		left[exclusion{dotted(chain[:last]), chain[last].Text}] = false
	}
	var out []pick
	for _, src := range sources {
		for _, p := range src.columns() {
			s.r.spend.Work(1)
			anywhere, here := exclusion{column: p.name}, exclusion{src.called(), p.name}
			if _, excluded := left[anywhere]; excluded {
				left[anywhere] = true
				continue
			}
			if _, excluded := left[here]; excluded {
				left[here] = true
				continue
			}
			out = append(out, pick{src: src, place: p})
		}
	}
	for _, chain := range e.Exclude {
		last := len(chain) - 1
		key := exclusion{dotted(chain[:last]), chain[last].Text}
		if !left[key] {
			s.notFound("EXCLUDE", key, chainAt(chain, e.Pos), sources)
		}
		left[key] = false // it is not found a second time
	}
	if len(out) == 0 && !s.r.mistakes.Any() {
		s.r.mistake(e.Pos, "No columns matched the EXCLUDE list")
	}
	return out
}

// replace applies REPLACE to the columns that it names.
func (s *scope) replace(e *hogql.Star, sources []source, chosen []pick) {
	by := make(map[string]*hogql.Alias, len(e.Replace))
	for _, r := range e.Replace {
		if by[r.Name.Text] == nil {
			by[r.Name.Text] = r
		}
	}
	found := make(map[string]bool, len(by))
	for i, c := range chosen {
		if r := by[c.place.name]; r != nil {
			chosen[i].replacement = r.X
			found[c.place.name] = true
		}
	}
	for _, r := range e.Replace {
		name := r.Name.Text
		switch {
		case found[name]:
		case slices.ContainsFunc(e.Exclude, func(chain []hogql.Name) bool { return chain[len(chain)-1].Text == name }):
			s.r.mistake(r.Name.Pos, `Column "%s" cannot occur in both EXCLUDE and REPLACE list`, name)
		default:
			s.notFound("REPLACE", exclusion{column: name}, r.Name.Pos, sources)
		}
	}
}

// notFound notes a name in EXCLUDE or REPLACE that is not the name of a column.
func (s *scope) notFound(list string, name exclusion, at hogql.Span, sources []source) {
	if s.missingTable() {
		return
	}
	in := name.table
	switch {
	case in != "":
	case len(sources) == 1 && sources[0].called() != "":
		in = sources[0].called()
	default:
		in = "the selected tables"
	}
	s.r.near(name.column, func(yield func(string) bool) {
		for _, src := range sources {
			for _, p := range src.columns() {
				if !yield(p.name) {
					return
				}
			}
		}
	}, at, `Column "%s" in %s list was not found in %s`, name.column, list, in)
}

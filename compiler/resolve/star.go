package resolve

import (
	"regexp"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// item is one column that an asterisk stands for.
type item struct {
	name  string
	value hogql.Expr
	from  *property
}

// star resolves *, t.* and COLUMNS('regex'); ok tells whether e is one of these.
func (s *scope) star(e hogql.Expr) (items []item, ok bool) {
	if a, ok := e.(*hogql.Star); ok {
		return s.asterisk(a), true
	}
	if c, ok := e.(*hogql.ColumnsMatching); ok {
		return s.matching(c), true
	}
	return nil, false
}

func (s *scope) matching(e *hogql.ColumnsMatching) []item {
	pattern, err := regexp.Compile(e.Pattern)
	if err != nil {
		s.r.mistake(e.Pos, "Invalid regular expression in COLUMNS: %s", e.Pattern)
		return nil
	}
	src := s.starred(nil, e.Pos)
	if src == nil {
		return nil
	}
	var out []item
	for _, p := range src.columns() {
		if pattern.MatchString(p.name) {
			out = append(out, s.item(p, e.Pos))
		}
	}
	if len(out) == 0 {
		s.r.mistake(e.Pos, "No columns match COLUMNS('%s')", e.Pattern)
	}
	return out
}

func (s *scope) item(p place, at hogql.Span) item {
	out := item{name: p.name, value: s.read(p, nil, at)}
	if d := p.document(); d != nil {
		out.from = d
	}
	return out
}

// starred finds the one table that an asterisk is about; nil after a mistake.
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

func (s *scope) asterisk(e *hogql.Star) []item {
	src := s.starred(e.Table, e.Pos)
	if src == nil {
		return nil
	}
	columns := src.columns()
	named := func(name string) func(place) bool { return func(p place) bool { return p.name == name } }
	for _, x := range e.Exclude {
		if !slices.ContainsFunc(columns, named(x.Text)) {
			s.r.unresolved(x.Text, x.Pos, src.each)
		}
		columns = slices.DeleteFunc(columns, named(x.Text))
	}
	for _, x := range e.Replace {
		if !slices.ContainsFunc(columns, named(x.Name.Text)) {
			s.r.unresolved(x.Name.Text, x.Name.Pos, src.each)
		}
	}
	out := make([]item, 0, len(columns))
	for _, p := range columns {
		i := slices.IndexFunc(e.Replace, func(a *hogql.Alias) bool { return a.Name.Text == p.name })
		if i < 0 {
			out = append(out, s.item(p, e.Pos))
			continue
		}
		out = append(out, item{name: p.name, value: s.expr(e.Replace[i].X)})
	}
	return out
}

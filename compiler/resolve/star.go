package resolve

import (
	"regexp"
	"regexp/syntax"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// item is one column that an asterisk stands for.
type item struct {
	name  string
	value resolved.Expr
	from  *property
}

// star resolves *, t.* and COLUMNS('regex'); ok reports whether e is one of these.
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
	pattern := s.pattern(e)
	if pattern == nil {
		return nil
	}
	src := s.starred(nil, e.Pos)
	if src == nil {
		return nil
	}
	var out []item
	for _, p := range src.columns() {
		s.r.spend.Work(stepsPerMatch)
		if pattern.MatchString(p.name) {
			s.r.spend.Columns(1)
			out = append(out, s.item(p, e.Pos))
		}
	}
	if len(out) == 0 {
		s.r.mistake(e.Pos, "No columns match COLUMNS('%s')", e.Pattern)
	}
	return out
}

// stepsPerMatch is about what it costs to look for a pattern in the name of a column.
const stepsPerMatch = 16

// Bounds on a pattern of COLUMNS, so that what it compiles to is small: a few characters can mean a hundred megabytes.
const (
	maxPattern       = 256   // bytes
	maxPatternStates = 5_000 // once its repetitions are written out
)

// pattern compiles the pattern of COLUMNS; nil after a mistake.
func (s *scope) pattern(e *hogql.ColumnsMatching) *regexp.Regexp {
	if len(e.Pattern) > maxPattern {
		s.r.mistake(e.Pos, "The regular expression in COLUMNS is longer than %d bytes", maxPattern)
		return nil
	}
	parsed, err := syntax.Parse(e.Pattern, syntax.Perl)
	if err != nil {
		s.r.mistake(e.Pos, "Invalid regular expression in COLUMNS: %s", e.Pattern)
		return nil
	}
	n := states(parsed)
	if n > maxPatternStates {
		s.r.mistake(e.Pos, "The regular expression in COLUMNS is too large: it has more than %d states", maxPatternStates)
		return nil
	}
	s.r.spend.Nodes(n)
	pattern, err := regexp.Compile(e.Pattern)
	if err != nil {
		s.r.mistake(e.Pos, "Invalid regular expression in COLUMNS: %s", e.Pattern)
		return nil
	}
	return pattern
}

// states is about how many states a pattern compiles to.
func states(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += states(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxPatternStates+1)
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
	excluded, replaced := s.exceptions(e, src, columns)
	shown := len(columns)
	for _, p := range columns {
		if excluded[p.name] {
			shown--
		}
	}
	s.r.spend.Columns(shown)
	out := make([]item, 0, shown)
	for _, p := range columns {
		switch replacement := replaced[p.name]; {
		case excluded[p.name]:
		case replacement != nil:
			out = append(out, item{name: p.name, value: s.expr(replacement)})
		default:
			out = append(out, s.item(p, e.Pos))
		}
	}
	return out
}

// exceptions are the columns that EXCLUDE and REPLACE of an asterisk name. Both are nil for most.
func (s *scope) exceptions(e *hogql.Star, src source, columns []place) (excluded map[string]bool, replaced map[string]hogql.Expr) {
	if len(e.Exclude) == 0 && len(e.Replace) == 0 {
		return nil, nil
	}
	left := make(map[string]bool, len(columns))
	for _, p := range columns {
		left[p.name] = true
	}
	excluded = make(map[string]bool, len(e.Exclude))
	for _, x := range e.Exclude {
		if !left[x.Text] {
			s.r.unresolved(x.Text, x.Pos, src.each)
		}
		delete(left, x.Text)
		excluded[x.Text] = true
	}
	replaced = make(map[string]hogql.Expr, len(e.Replace))
	for _, x := range e.Replace {
		if !left[x.Name.Text] {
			s.r.unresolved(x.Name.Text, x.Name.Pos, src.each)
		}
		if replaced[x.Name.Text] == nil {
			replaced[x.Name.Text] = x.X
		}
	}
	return excluded, replaced
}

package resolve

import "github.com/caddy-analytics/caddy-analytics/compiler/hogql"

// renamedSource is a table whose first columns, in the order of *, have other names: events AS e (a, b). A renamed column only has its new name; the
// table's other names stay.
type renamedSource struct {
	source
	given  []string          // for the first columns
	own    map[string]string // the table's names of the renamed columns
	hidden map[string]bool   // names of the table that columns have lost
}

// renamed applies the column names that a query gives to a table.
func (r *resolver) renamed(src source, given []hogql.Name, at hogql.Span) source {
	if len(given) == 0 {
		return src
	}
	columns := src.columns()
	if len(given) > len(columns) && len(columns) > 0 {
		r.tooManyNames(len(columns), given, at)
		given = given[:len(columns)]
	}
	out := &renamedSource{source: src, own: map[string]string{}, hidden: map[string]bool{}}
	for i, n := range given {
		if i < len(columns) {
			out.hidden[columns[i].name] = true
			out.own[n.Text] = columns[i].name
			out.given = append(out.given, n.Text)
		}
	}
	return out
}

func (r *resolver) tooManyNames(columns int, given []hogql.Name, at hogql.Span) {
	r.mistake(chainAt(given, at), "The table has %d column(s) but %d column name(s) were provided", columns, len(given))
}

func (s *renamedSource) find(name string) (place, bool) {
	own, ok := s.own[name]
	switch {
	case ok:
	case s.hidden[name]:
		return place{}, false
	default:
		own = name
	}
	p, ok := s.source.find(own)
	p.name = name
	return p, ok
}

func (s *renamedSource) columns() []place {
	out := s.source.columns()
	for i, name := range s.given {
		out[i].name = name
	}
	return out
}

func (s *renamedSource) each(yield func(string) bool) {
	for _, name := range s.given {
		if !yield(name) {
			return
		}
	}
	for name := range s.source.each {
		if !s.hidden[name] && !yield(name) {
			return
		}
	}
}

// stored returns the schema table behind a source; nil if it is something else.
func stored(src source) *tableSource {
	if r, ok := src.(*renamedSource); ok {
		src = r.source
	}
	t, _ := src.(*tableSource)
	return t
}

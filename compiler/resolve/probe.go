package resolve

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Probe asks which names are possible at a place in a query, even if the query has mistakes elsewhere.
type Probe struct {
	// Field is a field of the query whose name at Index is being typed. The names before it lead to the place.
	Field *hogql.Field
	Index int
	// Beside is the operand that the field is compared with; nil for none.
	Beside hogql.Expr
}

// Names are the possible names at a place.
type Names struct {
	// Columns are the columns of the tables in FROM, in order, or what is below the names before the place.
	Columns []Member
	// Local are the aliases of the SELECT, the parameters of lambdas and the values in WITH, sorted by name.
	Local []Member
	// Properties says whose properties are possible; nil if the place is not below a document. Its group is -1 for the properties of all group
	// types.
	Properties *schema.PropertyKey
	// Beside is the type of the operand that the field is compared with.
	Beside hogql.Type
}

// Member is one name. Table reports whether it only leads to other names and has no value itself.
type Member struct {
	Name  string
	Type  hogql.Type
	Table bool
}

// Look answers a probe of q; nil if the place is never resolved, as in arguments that are not expressions. An error comes from the budget.
func Look(q hogql.Query, p Probe, w World) (names *Names, err error) {
	defer budget.Catch(&err)
	r := w.resolver()
	r.probe = &probe{Probe: p}
	r.query(q, nil)
	return r.probe.names, nil
}

// probe is a Probe with its answer.
type probe struct {
	Probe

	names *Names
}

// probed reports whether f is the field of the probe, and answers it if so.
func (s *scope) probed(f *hogql.Field) bool {
	p := s.r.probe
	if p == nil || p.Field != f {
		return false
	}
	if p.names != nil { // an expression may be resolved more than once
		return true
	}
	p.names = new(Names)
	if p.Index == 0 {
		p.names.Columns, p.names.Local = s.visible(), s.local()
	} else {
		s.membersBelow(f.Chain[:p.Index], p.names)
	}
	if p.Beside != nil {
		p.names.Beside = typeOf(s.expr(p.Beside))
	}
	return true
}

// visible returns the columns that a bare name can refer to.
func (s *scope) visible() []Member {
	var out []Member
	seen := map[string]bool{}
	for _, src := range s.sources {
		for _, m := range s.r.membersOf(src) {
			if !seen[m.Name] {
				seen[m.Name] = true
				out = append(out, m)
			}
		}
	}
	return out
}

// membersOf returns the names below a table in FROM.
func (r *resolver) membersOf(src source) []Member {
	var out []Member
	for name := range src.each {
		if p, ok := src.find(name); ok {
			out = r.appendMember(out, name, p)
		}
	}
	return out
}

// appendMember appends a place as a member, unless it is hidden.
func (r *resolver) appendMember(list []Member, name string, p place) []Member {
	r.spend.Work(1)
	switch {
	case p.numbers != nil:
		return append(list, Member{Name: name, Type: intType})
	case p.query != nil:
		c := p.query.rel.columns[p.index]
		if c.quiet || c.hidden {
			return list
		}
		return append(list, Member{Name: name, Type: c.typ})
	case p.table == nil || p.field.Hidden:
		return list
	case !p.field.IsColumn():
		return append(list, Member{Name: name, Table: true})
	case p.field.Same != "" || p.field.Formula != nil:
		return append(list, Member{Name: name, Type: p.field.Type})
	}
	return append(list, Member{Name: name, Type: r.db.FieldType(p.table.table, p.field)})
}

// local returns the names defined by the SELECT and the lambdas around the place.
func (s *scope) local() []Member {
	var out []Member
	for fr := s.frame; fr != nil; fr = fr.outer {
		for i, name := range fr.shown {
			out = append(out, Member{Name: name, Type: fr.params[i].Type})
		}
		for _, e := range fr.byName.entries {
			if a := e.value; a.state != aliasOpen {
				out = append(out, Member{Name: a.name, Type: a.typ})
			}
		}
	}
	for env := s.env; env != nil; env = env.outer {
		if env.value != nil {
			out = append(out, Member{Name: env.name})
		}
	}
	slices.SortStableFunc(out, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b Member) bool { return a.Name == b.Name })
}

// membersBelow finds what can follow the names of a chain.
func (s *scope) membersBelow(chain []hogql.Name, to *Names) {
	p, rest, ok := s.leads(chain)
	if !ok {
		if len(chain) == 1 {
			for _, src := range s.sources {
				if src.called() == chain[0].Text {
					to.Columns = s.r.membersOf(src)
					return
				}
			}
		}
		return
	}
	for p.table != nil && !p.field.IsColumn() {
		if len(rest) == 0 {
			for name := range p.fieldNames {
				if below, ok := p.below(name); ok {
					to.Columns = s.r.appendMember(to.Columns, name, below)
				}
			}
			return
		}
		if p, ok = p.below(rest[0].Text); !ok {
			return
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		to.Properties = p.owner()
	}
}

// leads finds where the first names of a chain lead, as lookup does.
func (s *scope) leads(chain []hogql.Name) (p place, rest []hogql.Name, ok bool) {
	head := &hogql.Field{Chain: chain}
	if s.param(head, s.frame) != nil {
		return place{}, nil, false
	}
	if p, rest, ok := s.qualified(chain); ok {
		return p, rest, true
	}
	if a := s.alias(chain[0].Text, s.frame); a != nil {
		if doc := s.documentOfAlias(a); doc != nil && len(doc.keys) == 0 {
			return doc.place, chain[1:], true
		}
		return place{}, nil, false
	}
	if p, n := s.unqualified(chain[0]); n > 0 && !p.missing {
		return p, chain[1:], true
	}
	return place{}, nil, false
}

// owner returns whose properties are in the document at a place; nil if they have no definitions.
func (p place) owner() *schema.PropertyKey {
	for p.query != nil {
		from := p.query.rel.columns[p.index].from
		if from == nil || len(from.keys) > 0 {
			return nil
		}
		p = from.place
	}
	if p.table == nil || p.field.Type.Kind != hogql.JSON {
		return nil
	}
	key := schema.PropertyKey{Scope: p.field.Scope, Group: p.field.Group}
	switch group := p.table.group; {
	case group >= 0:
		key.Scope, key.Group = schema.GroupProperty, group
	case key.Scope == schema.NoProperties && p.table.table.IsGroups():
		key.Scope, key.Group = schema.GroupProperty, -1
	case key.Scope == schema.NoProperties:
		return nil
	}
	return &key
}

// unfinished returns the expression for a field that is being typed.
func unfinished(f *hogql.Field) resolved.Expr { return &resolved.Const{Pos: f.Pos} }

package actors

import "github.com/caddy-analytics/caddy-analytics/compiler/query"

// Query lists people, or the groups that an insight counts (contract: api.md, section 1.6).
type Query struct {
	// At is the place of the node in the JSON, such as source; empty for the outermost one.
	At string `json:"-"`
	// Source says who is listed: a query.PeopleSource, or a *query.HogQL with a column of ids; nil for all people.
	Source query.Node `json:"-"`
	// Select are HogQL expressions, columns of the source, or person, group, actor; nil for the default.
	Select []string `json:"select,omitempty"`
	// Search is part of an id, a name or an email address; empty for all.
	Search string `json:"search,omitempty"`
	// Properties and Fixed are two conditions on people, both of which must hold; nil for none.
	Properties *query.Condition `json:"properties,omitempty"`
	Fixed      *query.Condition `json:"fixedProperties,omitempty"`
	// OrderBy are HogQL expressions, optionally followed by ASC or DESC; nil for the default order, empty for the order of the ids.
	OrderBy   []string        `json:"orderBy,omitzero"`
	Limit     int             `json:"limit,omitempty"` // 0 for the default
	Offset    int             `json:"offset,omitempty"`
	Modifiers query.Modifiers `json:"modifiers,omitzero"`
}

// Kind returns ActorsQuery.
func (*Query) Kind() string { return "ActorsQuery" }

// Text returns the text of a HogQL source; mistakes in the other texts name the field.
func (q *Query) Text() string {
	if source, ok := q.Source.(*query.HogQL); ok {
		return source.Text()
	}
	return ""
}

// Canonical leaves out what only labels the query.
func (q *Query) Canonical() []byte {
	if q.Source == nil {
		return query.Canonical(q.Kind(), q)
	}
	return query.CanonicalOver(q.Kind(), q.Source, q)
}

// Field returns the dotted path of a field of the node, for the attr of a mistake.
func (q *Query) Field(name string) string { return (&query.Common{At: q.At}).Field(name) }

// Around returns the modifiers of the node itself, and the query inside it; nil for none.
func (q *Query) Around() (query.Modifiers, query.Node) { return q.Modifiers, q.Source }

// Overridden applies the overrides to the source; the list of all people takes none.
func (q *Query) Overridden(ov *query.Overrides) (query.Node, error) {
	source, err := ov.ApplyTo(q.Source)
	if source == nil || err != nil {
		return nil, err
	}
	out := *q
	out.Source = source
	return &out, nil
}

// Rows returns the limit asked for, 0 for none, and its field.
func (q *Query) Rows() (limit int, field string) { return q.Limit, q.Field("limit") }

// Read reads an ActorsQuery.
func Read(r *query.Reader, o *query.Object) query.Node {
	q := &Query{
		At: o.At.Attr, Select: r.Texts(o, "select"), Search: o.Text("search"), OrderBy: r.Texts(o, "orderBy"),
		Properties: r.Properties(o, "properties"), Fixed: r.Properties(o, "fixedProperties"), Modifiers: r.Modifiers(o),
	}
	if _, given := o.Take("orderBy"); given && q.OrderBy == nil {
		q.OrderBy = []string{}
	}
	q.Limit, q.Offset = o.OrZero("limit"), o.OrZero("offset")
	q.Source = r.EndWithSource(o, append(r.Drills(), "HogQLQuery")...)
	return q
}

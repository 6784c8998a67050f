package groups

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Query lists the groups of one type (contract: api.md, section 1.6).
type Query struct {
	// At is the place of the node in the JSON, such as source; empty for the outermost one.
	At string `json:"-"`
	// Type is the index of the group type.
	Type int `json:"group_type_index"`
	// Select are HogQL expressions over the table of groups, or group_name. There is at least one, and each stands once.
	Select []string `json:"select"`
	// Search is part of a name or a key; empty for all.
	Search string `json:"search,omitempty"`
	// Properties is a condition on groups; nil for none.
	Properties *query.Condition `json:"properties,omitempty"`
	// OrderBy are HogQL expressions or group_name, optionally followed by ASC or DESC; nil for the default order.
	OrderBy   []string        `json:"orderBy,omitempty"`
	Limit     int             `json:"limit,omitempty"` // 0 for the default
	Offset    int             `json:"offset,omitempty"`
	Modifiers query.Modifiers `json:"modifiers,omitzero"`
}

// Kind returns GroupsQuery.
func (*Query) Kind() string { return "GroupsQuery" }

// Text returns nothing: the node has several texts, and mistakes name the field.
func (*Query) Text() string { return "" }

// Canonical leaves out what only labels the query.
func (q *Query) Canonical() []byte { return query.Canonical(q.Kind(), q) }

// Field returns the dotted path of a field of the node, for the attr of a mistake.
func (q *Query) Field(name string) string { return (&query.Common{At: q.At}).Field(name) }

// Around returns the modifiers of the node. There is no query inside it.
func (q *Query) Around() (query.Modifiers, query.Node) { return q.Modifiers, nil }

// Rows returns the limit asked for, 0 for none, and its field.
func (q *Query) Rows() (limit int, field string) { return q.Limit, q.Field("limit") }

// Read reads a GroupsQuery.
func Read(r *query.Reader, o *query.Object) query.Node {
	o.Required("group_type_index")
	q := &Query{
		At: o.At.Attr, Search: o.Text("search"), Properties: r.Properties(o, "properties"), OrderBy: r.Texts(o, "orderBy"), Modifiers: r.Modifiers(o),
	}
	for _, column := range r.Texts(o, "select") {
		if !slices.Contains(q.Select, column) {
			q.Select = append(q.Select, column)
		}
	}
	if len(q.Select) == 0 {
		q.Select = []string{nameColumn}
	}
	if index := r.GroupType(o, "group_type_index"); index != nil {
		q.Type = *index
	}
	q.Limit, q.Offset = o.OrZero("limit"), o.OrZero("offset")
	r.Tags(o)
	o.Close()
	return q
}

package query

// DatabaseSchema asks for the tables and fields that queries can use (contract: api.md, section 1.6).
type DatabaseSchema struct{}

// Kind returns DatabaseSchemaQuery.
func (*DatabaseSchema) Kind() string { return "DatabaseSchemaQuery" }

// Text returns nothing: the node holds no HogQL.
func (*DatabaseSchema) Text() string { return "" }

func (*DatabaseSchema) node() {}

// Canonical is the same for every node of this kind.
func (q *DatabaseSchema) Canonical() []byte { return []byte(`{"kind":"` + q.Kind() + `"}`) }

func (r *reader) databaseSchema(m map[string]any, at place) Node {
	o := r.object(m, at)
	r.modifiers(o)
	r.tags(o)
	r.noConnection(o, "connectionId")
	o.ignore(labels...)
	o.close()
	return &DatabaseSchema{}
}

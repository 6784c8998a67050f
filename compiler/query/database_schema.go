package query

// DatabaseSchema asks for the tables and fields that queries can use (contract: api.md, section 1.6).
type DatabaseSchema struct{}

// Kind returns DatabaseSchemaQuery.
func (*DatabaseSchema) Kind() string { return "DatabaseSchemaQuery" }

// Text returns nothing: the node holds no HogQL.
func (*DatabaseSchema) Text() string { return "" }

// Canonical is the same for every node of this kind.
func (q *DatabaseSchema) Canonical() []byte { return []byte(`{"kind":"` + q.Kind() + `"}`) }

// ReadDatabaseSchema reads a DatabaseSchemaQuery.
func ReadDatabaseSchema(r *Reader, o *Object) Node {
	r.Modifiers(o)
	r.Tags(o)
	r.noConnection(o, "connectionId")
	o.Close()
	return &DatabaseSchema{}
}

package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// PropertyUse is a place where a query reads a property of events, persons or groups.
type PropertyUse struct {
	At  diag.Span // the property's name
	Key schema.PropertyKey
	// Storage is where the physical table stores the property.
	Storage schema.Storage
}

// Survey is Query that also returns the properties that the query reads, in order of first mention. It returns them even with mistakes.
func Survey(q hogql.Query, w World) (resolved.Query, []Output, []PropertyUse, error) {
	var found survey
	r := w.resolver()
	r.survey = &found
	tree, outputs, err := run(q, r)
	return tree, outputs, found.uses, err
}

// survey collects the uses of properties.
type survey struct {
	uses []PropertyUse
	seen map[diag.Span]bool
}

// note adds the use of a property that is directly in a document of a table. It notes each place once: an expression may be resolved more than
// once.
func (v *survey) note(p *property) {
	if v == nil || len(p.keys) != 1 || p.place.table == nil || p.keys[0].Index {
		return
	}
	at, t := p.keys[0].Pos, p.place.table
	key := p.key()
	if key.Scope == schema.NoProperties || at.IsZero() || v.seen[at] {
		return
	}
	if v.seen == nil {
		v.seen = map[diag.Span]bool{}
	}
	v.seen[at] = true
	v.uses = append(v.uses, PropertyUse{At: at, Key: key, Storage: t.r.db.Storage(t.table, p.place.field, key.Name)})
}

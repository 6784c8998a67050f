package resolve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// property is the value at a path in a JSON document, or the document itself if there are no keys.
type property struct {
	place place // of the document: a field of a table, or a column of a subquery
	keys  []hogql.Name
}

func (p *property) with(keys []hogql.Name) *property {
	if len(keys) == 0 || len(p.keys) > longestChain { // refused where it is read
		return p
	}
	return &property{place: p.place, keys: extendChain(p.keys, keys)}
}

// extendChain returns a chain of names followed by others. The result may be one of its arguments, so nothing may be appended to it.
func extendChain(chain, more []hogql.Name) []hogql.Name {
	switch {
	case len(chain) == 0:
		return more
	case len(more) == 0:
		return chain
	}
	return slices.Concat(chain, more)
}

// wanted is the form in which a property is read.
type wanted string

// The forms of a property.
const (
	typedValue  wanted = ""  // by its declared type, otherwise as text
	textValue   wanted = "t" // as text: strings bare, anything else as JSON text, NULL if missing or null
	stringValue wanted = "s" // as text if it is a string; for anything else, a value that no word can equal
	floatValue  wanted = "f" // as a number, from a number or a text
	boolValue   wanted = "b" // as a boolean, from a boolean or the texts true and false
	rawValue    wanted = "r" // as JSON text, strings in quotes, '' if missing; native JSON only
	scalarValue wanted = "v" // the same, null for an object; native JSON only
)

// document finds the JSON document or property that an expression refers to without any computation; nil for anything else.
func (s *scope) document(e hogql.Expr) *property {
	s.r.spend.Work(1)
	base, keys := peel(e)
	if a, ok := base.(*hogql.Alias); ok {
		if d := s.document(a.X); d != nil {
			return d.with(keys)
		}
	}
	if f, ok := base.(*hogql.Field); ok {
		return s.documentOfField(f, keys)
	}
	return nil
}

func (s *scope) documentOfField(f *hogql.Field, keys []hogql.Name) *property {
	if s.probed(f) || s.param(f, s.frame) != nil {
		return nil
	}
	if p, rest, ok := s.qualified(f.Chain); ok {
		return p.documentBelow(extendChain(rest, keys))
	}
	rest := extendChain(f.Chain[1:], keys)
	if a := s.alias(f.Chain[0].Text, s.frame); a != nil {
		if d := s.documentOfAlias(a); d != nil {
			return d.with(rest)
		}
		return nil
	}
	if p, n := s.unqualified(f.Chain[0]); n > 0 {
		return p.documentBelow(rest)
	}
	return nil
}

// documentOfAlias is document for the expression behind an alias.
func (s *scope) documentOfAlias(a *alias) *property {
	if a.node == nil {
		return nil
	}
	state, inner, turn := a.state, s.frame, s.turn
	a.state, s.frame, s.turn = aliasOpen, a.home, a.turn
	d := s.document(a.node.X)
	a.state, s.frame, s.turn = state, inner, turn
	if d != nil {
		s.r.spend.Nodes(len(d.keys)) // which are copied when more are added
	}
	return d
}

// documentBelow finds the JSON document that names after a place lead to.
func (p place) documentBelow(rest []hogql.Name) *property {
	for p.table != nil && !p.field.IsColumn() {
		if len(rest) == 0 {
			return nil
		}
		next, ok := p.below(rest[0].Text)
		if !ok {
			return nil
		}
		p, rest = next, rest[1:]
	}
	if d := p.document(); d != nil {
		return d.with(rest)
	}
	return nil
}

// document returns the JSON document at a place; nil if there is none.
func (p place) document() *property {
	switch {
	case p.table != nil && p.field.Type.Kind == hogql.JSON:
		return &property{place: p}
	case p.query != nil:
		if c := p.query.rel.columns[p.index]; c.from != nil || c.typ.Kind == hogql.JSON {
			return &property{place: p}
		}
	}
	return nil
}

// peel removes the accesses with constant keys from an expression, outermost last.
func peel(e hogql.Expr) (base hogql.Expr, keys []hogql.Name) {
	for {
		below, key, ok := access(e)
		if !ok {
			slices.Reverse(keys)
			return e, keys
		}
		e, keys = below, append(keys, key)
	}
}

// access splits off one access with a constant key.
func access(e hogql.Expr) (below hogql.Expr, key hogql.Name, ok bool) {
	if m, ok := e.(*hogql.Member); ok {
		return m.X, m.Name, true
	}
	if n, ok := e.(*hogql.Element); ok {
		return n.X, hogql.Name{Pos: n.Pos, Text: strconv.Itoa(n.N), Index: true}, true
	}
	i, ok := e.(*hogql.Index)
	if !ok {
		return nil, hogql.Name{}, false
	}
	c, ok := i.Index.(*hogql.Const)
	if !ok {
		return nil, hogql.Name{}, false
	}
	switch v := c.Value.(type) {
	case string:
		return i.X, hogql.Name{Pos: c.Pos, Text: v, Quoted: true}, true
	case int64:
		return i.X, hogql.Name{Pos: c.Pos, Text: strconv.FormatInt(v, 10), Quoted: true, Index: true}, true
	}
	return nil, hogql.Name{}, false
}

// definition returns the declared type of a property, and notes that the query depends on it. Only a property directly in a document has one.
func (r *resolver) definition(p *property) schema.PropertyType {
	if p.place.query != nil {
		if from := p.place.query.rel.columns[p.place.index].from; from != nil {
			return r.definition(from.with(p.keys))
		}
		return schema.StringProperty
	}
	if len(p.keys) != 1 || p.keys[0].Index || p.place.table.untyped {
		return schema.StringProperty
	}
	key := p.key()
	if strings.HasPrefix(key.Name, "$ai_") && strings.HasSuffix(key.Name, "_id") {
		return schema.StringProperty
	}
	typ := r.db.Properties.Of(key)
	if r.reads.Types == nil {
		r.reads.Types = schema.PropertyTypes{}
	}
	r.reads.Types[key] = typ
	return typ
}

// kinds returns the kinds of values that a property has had, and notes that the query relies on it; none if unknown. A key that contains a character
// used in paths may also be the path of another property.
func (r *resolver) kinds(p *property) physical.Kinds {
	t := p.place.table
	if len(r.db.Values) == 0 && !r.db.ValuesComplete || len(p.keys) != 1 || p.keys[0].Index || strings.ContainsAny(p.keys[0].Text, ".%") || !r.db.NativeJSON(t.table, p.place.field) {
		return 0
	}
	key := p.key()
	known := r.db.Values[key]
	if known == 0 && r.db.ValuesComplete && key.Scope != schema.NoProperties && physical.Noted(key.Name) {
		known = physical.Texts // it has had no text either, but that is the cheapest kind to look for
	}
	if known != 0 {
		if r.relies == nil {
			r.relies = schema.PropertyValues{}
		}
		r.relies[key] = known
	}
	return known
}

// key identifies a property directly in a document of a table.
func (p *property) key() schema.PropertyKey {
	key := schema.PropertyKey{Scope: p.place.field.Scope, Group: p.place.field.Group, Name: p.keys[0].Text}
	if group := p.place.table.group; group >= 0 {
		key.Scope, key.Group = schema.GroupProperty, group
	}
	return key
}

// property reads a property in the wanted form.
func (r *resolver) property(p *property, want wanted, at hogql.Span) resolved.Expr {
	if len(p.keys) > longestChain {
		r.mistake(at, "The query has a chain of more than %d names", longestChain)
		return &resolved.Const{Pos: at}
	}
	r.spend.Work(len(p.keys))
	for _, key := range p.keys {
		if key.Index && key.Text == "0" {
			r.zeroIndex(key.Pos)
			return &resolved.Const{Pos: at}
		}
	}
	if p.place.query != nil {
		return r.passedProperty(p, want, at)
	}
	if len(p.keys) == 0 {
		return p.whole(at)
	}
	if v, ok := p.virtual(); ok {
		return ofText(v.fieldValue(at), want, at)
	}
	r.survey.note(p)
	if want == typedValue {
		var isTime bool
		if want, isTime = r.declared(p); isTime {
			return r.bestEffort(r.property(p, want, at), at)
		}
	}
	t, f := p.place.table, p.place.field
	known := r.kinds(p)
	if t.direct { // no column needs a key and a name
		return t.stored(f, p.keys, known, want, t.alias, at)
	}
	return t.column(f, f.Key()+"\x00"+keyText(p.keys)+string(want), propertyName(f.Name, p.keys), func(scanned string) resolved.Expr {
		return t.stored(f, p.keys, known, want, scanned, at)
	})
}

// declared returns the form that the definition of a property asks for, and whether that is a time, which is read from the text.
func (r *resolver) declared(p *property) (want wanted, isTime bool) {
	switch r.definition(p) {
	case schema.NumericProperty:
		return floatValue, false
	case schema.BooleanProperty:
		return boolValue, false
	case schema.DateTimeProperty:
		return textValue, true
	case schema.StringProperty:
	}
	return textValue, false
}

// virtualPrefix starts the names of fields that can also be read like properties.
const virtualPrefix = "$virt_"

// virtual finds the field that a property refers to: properties.$virt_x is the field $virt_x of the owner of the properties (contract: hogql.md,
// section 9). A table that is scanned directly computes no fields: documents that it passes to an outer query are as stored.
func (p *property) virtual() (place, bool) {
	t := p.place.table
	if t == nil || t.direct || len(p.keys) != 1 || !strings.HasPrefix(p.keys[0].Text, virtualPrefix) {
		return place{}, false
	}
	out, ok := place{}, false
	if part := p.place.part; part != nil {
		out, ok = place{name: part.Name, table: t, field: part}.below(p.keys[0].Text)
	} else {
		out, ok = t.find(p.keys[0].Text)
	}
	return out, ok && out.field.Formula != nil
}

// whole reads an entire document as JSON text.
func (p *property) whole(at hogql.Span) resolved.Expr {
	t, f := p.place.table, p.place.field
	return t.column(f, f.Key(), f.Name, func(scanned string) resolved.Expr {
		typ := t.r.db.FieldType(t.table, f)
		c := &resolved.Column{Pos: at, Table: scanned, Name: f.PhysicalName(), Type: typ}
		if t.r.db.NativeJSON(t.table, f) {
			return native(typ, at, "toString", c)
		}
		return c
	})
}

// keyText identifies a path: a number differs from a text of digits.
func keyText(keys []hogql.Name) string {
	var b strings.Builder
	for _, k := range keys {
		if k.Index {
			b.WriteByte('#')
		}
		b.WriteString(k.Text)
		b.WriteByte(0)
	}
	return b.String()
}

// propertyName returns the name of a column for a property.
func propertyName(document string, keys []hogql.Name) string {
	var b strings.Builder
	b.WriteString(document)
	for _, k := range keys {
		b.WriteString("__")
		b.WriteString(k.Text)
	}
	return b.String()
}

// passedProperty reads a property from the result of a subquery. If the subquery returns rows of its own tables, it gets another column for the
// property, which is then read where it is stored; otherwise the property is extracted from the text.
func (r *resolver) passedProperty(p *property, want wanted, at hogql.Span) resolved.Expr {
	q := p.place.query
	if len(p.keys) == 0 {
		return q.column(p.place.index, at)
	}
	if i, ok := r.extend(q.rel, p.place.index, p.keys, want); ok {
		return q.column(i, at)
	}
	value := fromText(q.column(p.place.index, at), p.keys, at)
	return r.converted(value, p, want, at)
}

// extend adds a column for a property to a query, and returns its index.
func (r *resolver) extend(rel *relation, i int, keys []hogql.Name, want wanted) (int, bool) {
	id := fmt.Sprintf("%d %s%s", i, keyText(keys), want)
	if known, ok := rel.below[id]; ok {
		return known, true
	}
	if !rel.extensible(i) {
		return 0, false
	}
	r.spend.Columns(1)
	c := &column{hidden: true, from: rel.columns[i].from.with(keys)}
	if rel.scope != nil {
		value := r.property(c.from, want, hogql.Span{})
		c.printed, c.typ = rel.scope.unique(propertyName(rel.columns[i].printed, keys)), typeOf(value)
		rel.scope.tree.Columns = append(rel.scope.tree.Columns, named(value, c.printed))
	}
	for n, m := range rel.members {
		j, _ := r.extend(m, i, keys, want)
		if n == 0 {
			c.printed, c.typ = m.columns[j].printed, m.columns[j].typ
		} else {
			c.typ = merged(c.typ, m.columns[j].typ)
		}
	}
	if rel.below == nil {
		rel.below = map[string]int{}
	}
	rel.columns = append(rel.columns, c)
	rel.below[id] = len(rel.columns) - 1
	return rel.below[id], true
}

// extensible reports whether a query can get another column with a part of one of its columns, without a change to its rows.
func (rel *relation) extensible(i int) bool {
	if i >= len(rel.columns) || rel.columns[i].from == nil {
		return false
	}
	if s := rel.scope; s != nil {
		return !s.tree.Distinct && !s.grouped && s.aggregates == 0
	}
	for _, op := range rel.ops {
		if op != hogql.UnionAll {
			return false
		}
	}
	for _, m := range rel.members {
		if !m.extensible(i) || len(m.columns) != len(rel.columns) {
			return false
		}
	}
	return len(rel.members) > 0
}

// converted returns the wanted form of a property from its text.
func (r *resolver) converted(value resolved.Expr, p *property, want wanted, at hogql.Span) resolved.Expr {
	if want == typedValue {
		var isTime bool
		if want, isTime = r.declared(p); isTime {
			return r.bestEffort(value, at)
		}
	}
	return ofText(value, want, at)
}

// ofText converts a text to a form that needs no definition; forms other than numbers and booleans are the text itself.
func ofText(value resolved.Expr, want wanted, at hogql.Span) resolved.Expr {
	switch want {
	case floatValue:
		return floatOf(value, at)
	case boolValue:
		return boolOf(value, at)
	case typedValue, textValue, stringValue, rawValue, scalarValue:
	}
	return value
}

var (
	nullableString = nullable(stringType)
	nullableFloat  = hogql.Type{Kind: hogql.Float, Nullable: true}
	nullableBool   = nullable(boolType)
)

// floatOf parses a number from a text; NULL if it contains none.
func floatOf(text resolved.Expr, at hogql.Span) resolved.Expr {
	return native(nullableFloat, at, "accurateCastOrNull", text, literal("Float64"))
}

// boolOf parses a boolean from a text; NULL if it contains none.
func boolOf(text resolved.Expr, at hogql.Span) resolved.Expr {
	names := &resolved.Array{Items: []resolved.Expr{literal("true"), literal("false")}}
	values := &resolved.Array{Items: []resolved.Expr{literal(int64(1)), literal(int64(0))}}
	return native(nullableBool, at, "toBool", native(nullable(intType), at, "transform", text, names, values, literal(nil)))
}

// bestEffort parses a time from a text, in the project's zone unless the text names one; NULL if it contains none.
func (r *resolver) bestEffort(text resolved.Expr, at hogql.Span) resolved.Expr {
	return native(nullable(timeType), at, "parseDateTime64BestEffortOrNull", text, literal(int64(6)), literal(r.zone))
}

// fromText extracts the value at a path from JSON text: strings bare, anything else as JSON text, NULL if missing or null.
func fromText(document resolved.Expr, keys []hogql.Name, at hogql.Span) resolved.Expr {
	return native(nullableString, at, "JSONExtract", append(pathInto(document, keys), literal("Nullable(String)"))...)
}

// pathInto returns the arguments of a function that follows a path of keys into a document.
func pathInto(document resolved.Expr, keys []hogql.Name) []resolved.Expr {
	args := make([]resolved.Expr, 1, len(keys)+2)
	args[0] = document
	for _, k := range keys {
		args = append(args, keyConst(k))
	}
	return args
}

func keyConst(k hogql.Name) resolved.Expr {
	if k.Index {
		if n, err := strconv.ParseInt(k.Text, 10, 64); err == nil {
			return literal(n)
		}
	}
	return literal(k.Text)
}

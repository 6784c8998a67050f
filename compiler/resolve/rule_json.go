package resolve

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// jsonCall resolves JSONExtractString(properties, 'key', …) and similar calls on a document of ClickHouse's JSON type. The function needs text, and
// converting a whole document to text is costly; so the document is read at that path, and the function only gets the text found there.
func (s *scope) jsonCall(c *calling) resolved.Expr {
	if e := s.jsonPath(c); e != nil {
		return e
	}
	args := s.arguments(c)
	if typeOf(args[0]).MayBeNull() && (c.f.Result.Kind == hogql.ArrayKind || c.f.Path == schema.PathTyped && s.composite(args[len(args)-1])) {
		args[0] = native(stringType, c.Pos, "ifNull", args[0], literal(""))
	}
	return s.finish(c, args)
}

// composite reports whether an argument is the text of a type with several values, which ClickHouse cannot make NULL.
func (s *scope) composite(e resolved.Expr) bool {
	typ, _ := constantText(e)
	head, _, _ := strings.Cut(strings.TrimSpace(typ), "(")
	return head == "Array" || head == "Tuple" || head == "Map"
}

// jsonPath is jsonCall for such a document; nil for any other value.
func (s *scope) jsonPath(c *calling) resolved.Expr {
	if !isAccess(c.args[0]) {
		return nil
	}
	d := s.document(c.args[0])
	if d == nil || len(d.keys) > 0 || d.place.table == nil || !s.r.db.NativeJSON(d.place.table.table, d.place.field) {
		return nil
	}
	path := c.args[1:]
	if c.f.Path == schema.PathTyped {
		path = path[:max(len(path)-1, 0)]
	}
	var keys []hogql.Name
	for _, arg := range path {
		key, ok := writtenText(arg)
		if !ok || key == "" {
			break
		}
		keys = append(keys, hogql.Name{Pos: arg.At(), Text: key, Quoted: true})
	}
	if len(keys) == 0 {
		return nil
	}
	rest := c.args[1+len(keys):]
	d = d.with(keys)
	if _, ok := d.virtual(); ok { // these functions read what is stored
		return nil
	}
	switch {
	case len(rest) == 0 && c.f.Path == schema.PathText:
		return native(stringType, c.Pos, "ifNull", s.r.property(d, stringValue, c.Pos), literal(""))
	case len(rest) == 0 && c.f.Path == schema.PathExists:
		return native(boolType, c.Pos, "notEmpty", s.r.property(d, rawValue, c.Pos))
	case len(rest) == 0 && c.f.Path == schema.PathScalar:
		return s.finish(c, []resolved.Expr{s.r.property(d, scalarValue, c.Pos)})
	}
	args := []resolved.Expr{s.r.property(d, rawValue, c.Pos)}
	return s.finish(c, slices.Concat(args, s.list(rest)))
}

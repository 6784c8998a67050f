package resolve

import (
	"iter"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/compiler/typetext"
)

// constants checks arguments that name something in the engine: a time zone, a type, a character set. The engine looks up such names outside of
// the query, some of them in files, and caches what it finds; so it only receives names from our own lists, never a caller's text.
func (s *scope) constants(c *calling, args []resolved.Expr) {
	f := c.f
	if i := f.ZoneAt - 1; i >= 0 && i < len(args) && (!f.OriginAt || !isTime(typeOf(args[i]).Kind)) {
		args[i] = s.zoneName(f, args[i])
	}
	if i := len(args) - 1; f.TypeLast && (i > 0 || f.MaxArgs == 1) {
		args[i] = s.typeText(f, args[i])
	}
	for _, at := range f.NamesAt {
		if at <= len(args) {
			args[at-1] = s.listed(f, args[at-1])
		}
	}
}

// zoneName returns the time zone named by an argument, which must be a known one. The project's own zone keeps the project's name for it.
func (s *scope) zoneName(f *schema.Function, e resolved.Expr) resolved.Expr {
	name, ok := constantText(e)
	if !ok {
		if !s.isMistake(e) {
			s.r.mistake(e.At(), "The time zone of '%s' must be a constant name, such as 'Europe/Berlin'", f.Name)
		}
		return e
	}
	target, ok := s.r.zoneTarget(name)
	if !ok {
		s.r.near(name, schema.ZoneNames(), e.At(), "Unknown time zone: %s", name)
		return e
	}
	return &resolved.Const{Pos: e.At(), Value: target}
}

// zoneTarget returns the name by which the engine should load a zone.
func (r *resolver) zoneTarget(name string) (string, bool) {
	target, ok := schema.LookupZone(name)
	if ok && name == r.zone {
		target = name
	}
	return target, ok
}

// typeText parses the text of a type, and writes it again.
func (s *scope) typeText(f *schema.Function, e resolved.Expr) resolved.Expr {
	written, ok := constantText(e)
	if !ok {
		if !s.isMistake(e) {
			s.r.mistake(e.At(), "The type of '%s' must be a constant text, such as 'Array(String)'", f.Name)
		}
		return e
	}
	printed, err := typetext.Rewrite(written, zoneNames{s.r})
	if err == nil {
		return &resolved.Const{Pos: e.At(), Value: printed}
	}
	if !s.r.mistakes.Full() {
		mistake := diag.New(diag.QueryError, e.At(), "%s", err.Detail)
		if near := nearest(err); near != "" {
			mistake.Hint = written[:err.Start] + near + written[err.End:]
		}
		s.r.mistakes.Add(mistake)
	}
	return e
}

// nearest returns the name probably meant by an unknown name in a type; "" if none is near.
func nearest(err *typetext.Error) string {
	if err.Name == "" {
		return ""
	}
	return schema.Nearest(err.Name, err.Among)
}

// zoneNames are the zones that a type may name.
type zoneNames struct{ r *resolver }

// Lookup finds a zone.
func (z zoneNames) Lookup(name string) (string, bool) { return z.r.zoneTarget(name) }

// Names yields all zones.
func (zoneNames) Names() iter.Seq[string] { return schema.ZoneNames() }

// listed returns the name in an argument, which must be one of the function's names.
func (s *scope) listed(f *schema.Function, e resolved.Expr) resolved.Expr {
	name, ok := constantText(e)
	if !ok {
		if !s.isMistake(e) {
			s.r.mistake(e.At(), "The %s of '%s' must be a constant name, such as '%s'", f.Names.Noun, f.Name, f.Names.Example)
		}
		return e
	}
	printed, ok := f.Names.Lookup(name)
	if !ok {
		s.r.near(name, f.Names.All(), e.At(), "Unknown %s: %s", f.Names.Noun, name)
		return e
	}
	return &resolved.Const{Pos: e.At(), Value: printed}
}

// constantText returns the value of a constant text, or of an alias for one.
func constantText(e resolved.Expr) (string, bool) {
	if c := constantOf(e); c != nil {
		return text(c)
	}
	return "", false
}

// constantOf returns a constant, or the one that an alias stands for; nil for any other expression.
func constantOf(e resolved.Expr) *resolved.Const {
	if ref, ok := e.(*resolved.AliasRef); ok {
		return ref.Const
	}
	c, _ := e.(*resolved.Const)
	return c
}

// isMistake reports whether an expression is a NULL that replaces something refused.
func (s *scope) isMistake(e resolved.Expr) bool { return isNull(e) && s.r.mistakes.Any() }

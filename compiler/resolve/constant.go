package resolve

import (
	"iter"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/compiler/typetext"
)

// constants checks the arguments that name something of the engine: a time zone, a type, a character set. The engine looks
// for such names beyond the query, some of them in files, and keeps what it finds; so it gets only names of our own
// lists, and never a caller's text.
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

// zoneName returns the time zone that an argument names, which must be a known one. The project's own zone keeps the
// name that the project has for it.
func (s *scope) zoneName(f *schema.Function, e resolved.Expr) resolved.Expr {
	name, ok := s.constantText(e)
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

// zoneTarget is the name under which the engine is to load a zone.
func (r *resolver) zoneTarget(name string) (string, bool) {
	target, ok := schema.LookupZone(name)
	if ok && name == r.zone {
		target = name
	}
	return target, ok
}

// typeText reads the text of a type, and writes it again.
func (s *scope) typeText(f *schema.Function, e resolved.Expr) resolved.Expr {
	written, ok := s.constantText(e)
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

// nearest is the name that was probably meant by an unknown one in a type; "" when none is near.
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

// Names yields all of them.
func (zoneNames) Names() iter.Seq[string] { return schema.ZoneNames() }

// listed returns the name in an argument, which must be one that the function knows.
func (s *scope) listed(f *schema.Function, e resolved.Expr) resolved.Expr {
	name, ok := s.constantText(e)
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

// constantText returns the value of a constant text, also where an alias stands for it.
func (s *scope) constantText(e resolved.Expr) (string, bool) {
	for {
		ref, ok := e.(*resolved.AliasRef)
		if !ok {
			return text(e)
		}
		if e = s.aliasValue(ref.Name); e == nil {
			return "", false
		}
	}
}

// aliasValue finds what an alias stands for by its printed name; nil for one that is not resolved.
func (s *scope) aliasValue(printed string) resolved.Expr {
	for fr := s.frame; fr != nil; fr = fr.outer {
		for _, e := range fr.byName.entries {
			if a := e.value; a.printed == printed && a.state == aliasDefined {
				return a.value
			}
		}
	}
	return nil
}

// isMistake reports whether an expression is a NULL in place of what was refused.
func (s *scope) isMistake(e resolved.Expr) bool { return isNull(e) && s.r.mistakes.Any() }

package resolve

import (
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// names are the names in use in one place of the resolved tree, each with the number of names derived from it. The zero value is ready to use.
type names struct{ taken smallMap[int] }

// unique returns an unused printable name, and marks it as used.
func (n *names) unique(name string) string {
	base := printable(name)
	made := n.taken.at(base)
	if made == nil {
		n.taken.put(base, 1)
		return base
	}
	for {
		*made++
		out := base + "_" + strconv.Itoa(*made)
		if n.taken.at(out) == nil {
			n.taken.put(out, 1)
			return out
		}
	}
}

// lambdaNames are the printed names of the parameters of a scope's lambdas. In a lambda, nothing else may be printed under their names, unless the
// parameter hides it in the query too. The zero value is ready to use.
type lambdaNames struct {
	params  map[string]bool   // printed
	renamed map[string]string // the printed name of each parameter that is not printed as it is written
	// The printed names of aliases and parameters that are not printed as they are written: a parameter that is written so would hide them.
	disguised map[string]bool
}

// paramName returns the printed name of a lambda's parameter. It is the same in all lambdas, so that equal expressions are printed alike.
func (s *scope) paramName(name string) string {
	l := &s.lambdas
	printed := name
	if other, ok := l.renamed[name]; ok {
		printed = other
	} else if l.disguised[name] {
		printed = s.made(name)
		if l.renamed == nil {
			l.renamed = map[string]string{}
		}
		l.renamed[name] = printed
		l.disguise(printed)
	}
	if l.params == nil {
		l.params = map[string]bool{}
	}
	l.params[printed] = true
	return printed
}

// aliasName returns an unused name for an alias.
func (s *scope) aliasName(name string) string {
	printed := s.unique(name)
	for printed != name && s.lambdas.params[printed] {
		printed = s.unique(name)
	}
	return printed
}

// made returns an unused name for an alias or a parameter that is not in the query.
func (s *scope) made(name string) string {
	printed := s.unique(name)
	for s.lambdas.params[printed] {
		printed = s.unique(name)
	}
	return printed
}

// put adds an alias to a frame.
func (s *scope) put(f *frame, a *alias) {
	f.byName.put(a.name, a)
	if a.printed == a.name {
		return
	}
	s.lambdas.disguise(a.printed)
}

func (l *lambdaNames) disguise(printed string) {
	if l.disguised == nil {
		l.disguised = map[string]bool{}
	}
	l.disguised[printed] = true
}

// longestName bounds printed names, in bytes.
const longestName = 60

// printable turns a name into a plain word: dots would mean a subcolumn, long expressions do not help readers, and names with a leading underscore
// may be ClickHouse's own, such as _part, or __grouping_set, which would make the query fail.
func printable(name string) string {
	if len(name) > longestName {
		name = name[:longestName]
	}
	if isPrintable(name) {
		return name
	}
	out := make([]byte, 0, len(name))
	for i := range len(name) {
		c := name[i]
		switch {
		case plainByte(c), c == '_' && len(out) > 0:
			out = append(out, c)
		case len(out) > 0 && out[len(out)-1] != '_':
			out = append(out, '_')
		}
	}
	for len(out) > 1 && out[len(out)-1] == '_' && name[len(name)-1] != '_' {
		out = out[:len(out)-1]
	}
	if len(out) == 0 || strings.EqualFold(string(out), schema.ProjectColumn) {
		return string(out) + "_"
	}
	return string(out)
}

// isPrintable reports whether a name already is a plain word.
func isPrintable(name string) bool {
	if name == "" || name[0] == '_' || strings.EqualFold(name, schema.ProjectColumn) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !plainByte(c) && c != '_' {
			return false
		}
	}
	return true
}

// plainByte reports whether a byte may occur in a plain word.
func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '$'
}

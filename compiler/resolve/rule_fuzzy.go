package resolve

import "github.com/caddy-analytics/caddy-analytics/compiler/resolved"

// The limits of multiFuzzyMatchAny and similar functions. The engine builds an automaton from the patterns and caches those of the last 500 calls: at
// these limits each takes one megabyte, or three at a distance of 4.
const (
	maxDistance = 2
	maxPatterns = 32 // bytes of all patterns together
)

// fuzzy resolves f(text, distance, patterns).
func (s *scope) fuzzy(c *calling) resolved.Expr {
	args := s.arguments(c)
	if n, ok := whole(args[1]); !ok || n < 0 || n > maxDistance {
		s.r.mistake(args[1].At(), "The distance of '%s' must be a constant from 0 to %d", c.f.Name, maxDistance)
	}
	if size, ok := textSize(args[2]); !ok || size > maxPatterns {
		s.r.mistake(c.args[2].At(), "The patterns of '%s' must be constant, and %d bytes together at most", c.f.Name, maxPatterns)
	}
	return s.finish(c, args)
}

// whole returns the value of a constant number.
func whole(e resolved.Expr) (int64, bool) {
	c, ok := e.(*resolved.Const)
	if !ok {
		return 0, false
	}
	n, ok := c.Value.(int64)
	return n, ok
}

// textSize returns the total bytes of the texts in a constant array.
func textSize(e resolved.Expr) (size int, ok bool) {
	if a, ok := e.(*resolved.Array); ok {
		for _, item := range a.Items {
			s, ok := text(item)
			if !ok {
				return 0, false
			}
			size += len(s)
		}
		return size, true
	}
	c, ok := e.(*resolved.Const)
	if !ok {
		return 0, false
	}
	items, ok := c.Value.([]any)
	for _, item := range items {
		s, isText := item.(string)
		ok = ok && isText
		size += len(s)
	}
	return size, ok
}

package rows

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/internal/chtype"
)

// Wide writes the integers of columns that may exceed 53 bits as strings, for readers that parse every JSON number as a float64, such as JavaScript.
// It is safe for concurrent use.
type Wide struct{ row wide }

// wide describes which values are such integers: the value itself, all values of a kind (the items of an array, the members of a map), or values by
// place (the cells of a row, the parts of a tuple).
type wide struct {
	integer bool
	each    *wide
	places  []wide
}

func (w *wide) none() bool { return !w.integer && w.each == nil && w.places == nil }

// NewWide returns a Wide for rows with columns of these ClickHouse types; nil if no column has such integers.
func NewWide(types []string) *Wide {
	row := placesOf(types)
	if row.none() {
		return nil
	}
	return &Wide{row}
}

// wideIntegers are the integer types that JSON readers may not represent exactly.
var wideIntegers = map[string]bool{
	"Int64": true, "UInt64": true, "Int128": true, "UInt128": true, "Int256": true, "UInt256": true,
}

// IsWide reports whether a ClickHouse type without arguments is an integer of more than 53 bits.
func IsWide(name string) bool { return wideIntegers[name] || strings.HasPrefix(name, "Interval") }

func wideOf(typ string) wide {
	name, args := chtype.Parts(typ)
	switch name {
	case "Nullable", "LowCardinality":
		return wideOf(args[0])
	case "SimpleAggregateFunction":
		return wideOf(args[len(args)-1])
	case "Array":
		return eachOf(wideOf(args[0]))
	case "Map":
		return eachOf(wideOf(args[1]))
	case "Nested":
		return eachOf(placesOf(chtype.Fields(args)))
	case "Tuple":
		return placesOf(chtype.Fields(args))
	}
	return wide{integer: IsWide(name)}
}

func eachOf(item wide) wide {
	if item.none() {
		return wide{}
	}
	return wide{each: &item}
}

func placesOf(types []string) wide {
	places := make([]wide, len(types))
	some := false
	for i, typ := range types {
		places[i] = wideOf(typ)
		some = some || !places[i].none()
	}
	if !some {
		return wide{}
	}
	return wide{places: places}
}

// Append appends a row, a JSON array, with its integers as strings.
func (w *Wide) Append(dst, row []byte) ([]byte, error) {
	s := scanner{row: row}
	dst, ok := w.row.append(dst, &s)
	if !ok || s.pos != len(row) {
		return dst, ErrMalformed
	}
	return dst, nil
}

// append appends the value at the position of s.
func (w *wide) append(dst []byte, s *scanner) ([]byte, bool) {
	start := s.pos
	switch {
	case start >= len(s.row):
		return dst, false
	case !w.none() && (s.row[start] == '[' || s.row[start] == '{'):
		return w.appendItems(dst, s)
	case !s.skipValue():
		return dst, false
	}
	text := s.row[start:s.pos]
	if w.integer && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') {
		dst = append(dst, '"')
		dst = append(dst, text...)
		return append(dst, '"'), true
	}
	return append(dst, text...), true
}

// appendItems appends an array or an object, converting each item or member.
func (w *wide) appendItems(dst []byte, s *scanner) ([]byte, bool) {
	end := s.row[s.pos] + 2 // ] or }
	for n := 0; ; n++ {
		dst = append(dst, s.row[s.pos])
		s.pos++
		s.blanks()
		if n == 0 && s.at(end) {
			break
		}
		if end == '}' {
			key := s.pos
			if !s.at('"') || !s.skipString() || !s.at(':') {
				return dst, false
			}
			s.pos++
			dst = append(dst, s.row[key:s.pos]...)
		}
		var ok bool
		if dst, ok = w.item(n).append(dst, s); !ok {
			return dst, false
		}
		s.blanks()
		if s.at(end) {
			break
		}
		if !s.at(',') {
			return dst, false
		}
	}
	s.pos++
	return append(dst, end), true
}

// item returns what describes item n of an array or object.
func (w *wide) item(n int) *wide {
	switch {
	case w.each != nil:
		return w.each
	case n < len(w.places):
		return &w.places[n]
	}
	return &wide{}
}

package block

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// scanner finds the paths and values of a JSON object. It leaves to the engine what it does not understand, and what might get another type there.
type scanner struct {
	in    string
	at    int
	found []found
	items []item
	name  []byte // of the path up to here
	last  *path  // the last path that was found
	row   int
}

// found is the value of a path.
type found struct {
	path     *path
	kind     kind
	scalar   scalar
	from, to int // items of an array
}

// item is an item of an array; null has no kind.
type item struct {
	kind   kind
	scalar scalar
}

// maxDepth is how deeply objects may be nested.
const maxDepth = 16

// object scans an object, which must be all of in.
func (s *scanner) object(c *pathsColumn, in string) bool {
	s.in, s.at, s.found, s.items, s.name, s.last = in, 0, s.found[:0], s.items[:0], s.name[:0], nil
	s.row++ // also for a row that is not added: the number only has to differ
	return s.take('{') && s.members(c, 0) && s.at == len(in)
}

// take skips b if it is the next byte, and reports whether it was.
func (s *scanner) take(b byte) bool {
	if s.at < len(s.in) && s.in[s.at] == b {
		s.at++
		return true
	}
	return false
}

// members scans the members of an object after its opening brace.
func (s *scanner) members(c *pathsColumn, depth int) bool {
	if s.take('}') {
		return depth == 0 // nested empty objects are left to the engine
	}
	for {
		if !s.member(c, depth) {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// member scans a key and its value.
func (s *scanner) member(c *pathsColumn, depth int) bool {
	if depth == 0 {
		if p := s.expected(c); p != nil {
			return s.value(c, p, depth)
		}
	}
	from := s.at
	key, ok := s.text()
	raw := s.in[from:s.at]
	if !ok || key == "" || !s.take(':') {
		return false
	}
	end := len(s.name)
	if end > 0 {
		s.name = append(s.name, '.')
	}
	if strings.Contains(key, ".") {
		key = strings.ReplaceAll(key, ".", "%2E")
	}
	s.name = append(s.name, key...)
	defer func() { s.name = s.name[:end] }()
	if s.take('{') {
		return depth < maxDepth && s.members(c, depth+1)
	}
	if strings.HasPrefix(s.in[s.at:], "null") {
		s.at += len("null")
		return true
	}
	p := c.find(s.name)
	if p == nil {
		return false
	}
	if depth == 0 {
		p.key = raw + ":"
	}
	return s.value(c, p, depth)
}

// expected skips the key that was at this place in the last object, and returns its path. It returns nil if another key is here, or if an object or
// null follows.
func (s *scanner) expected(c *pathsColumn) *path {
	p := c.first
	if s.last != nil {
		p = s.last.next
	}
	if p == nil || p.key == "" || !strings.HasPrefix(s.in[s.at:], p.key) {
		return nil
	}
	after := s.at + len(p.key)
	if after >= len(s.in) || s.in[after] == '{' || s.in[after] == 'n' {
		return nil
	}
	s.at = after
	return p
}

// value scans the value of a path.
func (s *scanner) value(c *pathsColumn, p *path, depth int) bool {
	if p.row == s.row {
		return false // a duplicate key
	}
	p.row = s.row
	if depth == 0 {
		if s.last == nil {
			c.first = p
		} else {
			s.last.next = p
		}
		s.last = p
	}
	f := found{path: p}
	if s.take('[') {
		f.from = len(s.items)
		of, ok := s.array()
		f.to, f.kind = len(s.items), arrays+of
		s.found = append(s.found, f)
		return ok
	}
	var ok bool
	f.kind, ok = s.scalar(&f.scalar)
	s.found = append(s.found, f)
	return ok
}

// array scans the items of an array after its opening bracket. All must have the same type, except for nulls.
func (s *scanner) array() (of kind, ok bool) {
	for {
		i := item{}
		if strings.HasPrefix(s.in[s.at:], "null") {
			s.at += len("null")
		} else if i.kind, ok = s.scalar(&i.scalar); !ok {
			return none, false
		}
		if i.kind != none {
			if of != none && of != i.kind {
				return none, false
			}
			of = i.kind
		}
		s.items = append(s.items, i)
		if s.take(']') {
			return of, of != none
		}
		if !s.take(',') {
			return none, false
		}
	}
}

// scalar scans a text, number or boolean.
func (s *scanner) scalar(into *scalar) (k kind, ok bool) {
	if s.at >= len(s.in) {
		return none, false
	}
	switch b := s.in[s.at]; {
	case b == '"':
		into.text, ok = s.text()
		return text, ok
	case b == '-' || b >= '0' && b <= '9':
		return s.number(into)
	case strings.HasPrefix(s.in[s.at:], "true"):
		s.at += len("true")
		into.bits = 1
		return boolean, true
	case strings.HasPrefix(s.in[s.at:], "false"):
		s.at += len("false")
		return boolean, true
	}
	return none, false
}

// text scans a string.
func (s *scanner) text() (string, bool) {
	if !s.take('"') {
		return "", false
	}
	rest := s.in[s.at:]
	end := strings.IndexByte(rest, '"')
	if end < 0 {
		return "", false
	}
	if strings.IndexByte(rest[:end], '\\') < 0 {
		s.at += end + 1
		return rest[:end], true
	}
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			quoted := s.in[s.at-1 : s.at+i+1]
			s.at += i + 1
			return unquote(quoted)
		}
	}
	return "", false
}

// unquote decodes a string with escapes. It leaves escaped surrogates to the engine.
func unquote(quoted string) (out string, ok bool) {
	raw := []byte(quoted)
	if bytes.Contains(raw, []byte(`\ud`)) || bytes.Contains(raw, []byte(`\uD`)) {
		return "", false
	}
	err := json.Unmarshal(raw, &out)
	return out, err == nil
}

// maxDigits is the number of digits up to which every integer fits into 64 bits.
const maxDigits = 18

// number scans a number.
func (s *scanner) number(into *scalar) (k kind, ok bool) {
	from := s.at
	whole := true
	for ; s.at < len(s.in); s.at++ {
		b := s.in[s.at]
		if b >= '0' && b <= '9' || b == '-' && s.at == from {
			continue
		}
		if b != '.' && b != 'e' && b != 'E' && b != '+' && b != '-' {
			break
		}
		whole = false
	}
	digits := s.in[from:s.at]
	positive := strings.TrimPrefix(digits, "-")
	if positive == "" || len(positive) > 1 && positive[0] == '0' && positive[1] != '.' || digits == "-0" {
		return none, false
	}
	if whole {
		n, err := strconv.ParseInt(digits, 10, 64)
		into.bits = uint64(n) //nolint:gosec // the same bits
		return integer, err == nil && len(positive) <= maxDigits
	}
	f, err := strconv.ParseFloat(digits, 64)
	into.bits = floatBits(f)
	return float, err == nil && json.Valid([]byte(digits))
}

// Package rows converts rows of results from the JSON arrays in which they are stored to JSON objects and to CSV.
package rows

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// ErrMalformed reports that a row is not a JSON array with as many cells as there are columns. Rows come from the database, so this is a bug or a
// truncated answer.
var ErrMalformed = errors.New("a row of a result is not well formed")

// Keys returns the names of columns as members of an object: where several columns have the same name, the later ones get a number that makes the
// name unique.
func Keys(columns []string) []string {
	keys := make([]string, len(columns))
	known := make(map[string]bool, len(columns)) // whether the name is taken
	for _, name := range columns {
		known[name] = false
	}
	last := make(map[string]int) // the number that a column of that name got last
	for i, name := range columns {
		key := name
		for n := max(last[name], 1) + 1; known[key]; n++ {
			if candidate := name + "_" + strconv.Itoa(n); !mentioned(known, candidate) {
				key, last[name] = candidate, n
			}
		}
		keys[i], known[key] = key, true
	}
	return keys
}

func mentioned(names map[string]bool, name string) bool {
	_, ok := names[name]
	return ok
}

// Objects writes rows as JSON objects. It is safe for concurrent use.
type Objects struct {
	members [][]byte // `{"a":`, `,"b":` …
}

// NewObjects returns Objects for rows of these columns, with members named by Keys.
func NewObjects(columns []string) *Objects {
	o := &Objects{members: make([][]byte, len(columns))}
	for i, key := range Keys(columns) {
		lead := byte(',')
		if i == 0 {
			lead = '{'
		}
		o.members[i] = append(appendString([]byte{lead}, key), ':')
	}
	return o
}

// NameBytes returns how many bytes the names take in each object.
func (o *Objects) NameBytes() (n int) {
	for _, member := range o.members {
		n += len(member)
	}
	return n
}

// Append appends a row, a JSON array, as an object.
func (o *Objects) Append(dst, row []byte) ([]byte, error) {
	if len(o.members) == 0 {
		return append(dst, '{', '}'), nil
	}
	cells := scanner{row: row}
	for _, member := range o.members {
		cell, ok := cells.next()
		if !ok {
			return dst, ErrMalformed
		}
		dst = append(dst, member...)
		dst = append(dst, cell...)
	}
	if !cells.ended() {
		return dst, ErrMalformed
	}
	return append(dst, '}'), nil
}

// appendString appends a text as JSON.
func appendString(dst []byte, text string) []byte {
	buf := bytes.NewBuffer(dst)
	encoder := json.NewEncoder(buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic("BUG: encoding a string: " + err.Error())
	}
	return buf.Bytes()[:buf.Len()-1] // without the line feed from Encode
}

// scanner iterates over the cells of a row. It assumes that they are JSON and only looks for where each ends.
type scanner struct {
	row []byte
	pos int
}

// next returns the next cell without surrounding blanks.
func (s *scanner) next() ([]byte, bool) {
	if s.pos >= len(s.row) || s.pos == 0 && s.row[0] != '[' || s.pos > 0 && s.row[s.pos] != ',' {
		return nil, false
	}
	s.pos++
	s.blanks()
	start := s.pos
	if !s.skip() {
		return nil, false
	}
	cell := s.row[start:s.pos]
	s.blanks()
	return cell, true
}

// ended reports whether there are no more cells.
func (s *scanner) ended() bool { return s.pos == len(s.row)-1 && s.row[s.pos] == ']' }

func (s *scanner) blanks() {
	for s.pos < len(s.row) && s.row[s.pos] == ' ' {
		s.pos++
	}
}

// at reports whether the next byte is c.
func (s *scanner) at(c byte) bool { return s.pos < len(s.row) && s.row[s.pos] == c }

// skipValue skips one value, which may be the last of the row.
func (s *scanner) skipValue() bool {
	if s.at('"') {
		return s.skipString()
	}
	return s.skip()
}

// skip skips one value, and reports whether there was one.
func (s *scanner) skip() bool {
	start, depth := s.pos, 0
	for s.pos < len(s.row) {
		switch s.row[s.pos] {
		case '"':
			if !s.skipString() {
				return false
			}
			continue
		case '[', '{':
			depth++
		case ']', '}':
			if depth == 0 {
				return s.pos > start
			}
			depth--
		case ',', ' ':
			if depth == 0 {
				return s.pos > start
			}
		}
		s.pos++
	}
	return false // the row's closing bracket is missing
}

func (s *scanner) skipString() bool {
	for i := s.pos + 1; i < len(s.row); i++ {
		switch s.row[i] {
		case '\\':
			i++
		case '"':
			s.pos = i + 1
			return true
		}
	}
	return false
}

package block

import (
	"encoding/binary"
	"math"
	"regexp"
	"strconv"
)

// flatVersion is the version of the encoding of a JSON column, and of the Dynamic column of a path, that has the values of each path type by type.
const flatVersion = 3

// defaultPaths is the limit of a JSON column whose type does not name one.
const defaultPaths = 1024

var jsonType = regexp.MustCompile(`^JSON(?:\(max_dynamic_paths=(\d{1,6})\))?$`)

// jsonPaths returns how many paths a JSON column keeps apart. It reports false for types with further parameters, which this package does not
// support.
func jsonPaths(typ string) (limit int, ok bool) {
	m := jsonType.FindStringSubmatch(typ)
	switch {
	case m == nil:
		return 0, false
	case m[1] == "":
		return defaultPaths, true
	}
	limit, err := strconv.Atoi(m[1])
	return limit, err == nil
}

// pathsColumn is a JSON column, path by path.
type pathsColumn struct {
	typ    string
	limit  int
	rows   int
	paths  []*path
	byName map[string]*path
	first  *path // the first path of the last row
	scan   scanner
}

func newPathsColumn(typ string, limit int) *pathsColumn {
	return &pathsColumn{typ: typ, limit: limit, byName: map[string]*path{}}
}

// path holds the values of one path.
type path struct {
	name   string
	key    string // as written in the text, with its quotes and colon, if the path is a key of the outermost object
	next   *path  // the path that followed it the last time
	row    int    // the last row in which it was found, counted from 1
	kinds  []byte // of its value in each row, up to the last row that has one
	values [kinds]values
}

// values are the values of a path that have the same type.
type values struct {
	out []byte
	// For arrays: where each one ends, which items are null, and how many items there are.
	ends, nulls []byte
	items       uint64
}

// kind is the type of a value, or none.
type kind byte

// The kinds of scalars are followed by those of arrays of them.
const (
	none kind = iota
	text
	integer
	float
	boolean
	arrays // an array of text is arrays + text
)

const kinds = int(arrays + arrays)

var typeNames = [kinds]string{
	text: "String", integer: "Int64", float: "Float64", boolean: "Bool",
	arrays + text: "Array(Nullable(String))", arrays + integer: "Array(Nullable(Int64))",
	arrays + float: "Array(Nullable(Float64))", arrays + boolean: "Array(Nullable(Bool))",
}

func (c *pathsColumn) sentAs() string { return c.typ }

// find returns a path, and adds it if there is room for another; nil if there is none.
func (c *pathsColumn) find(name []byte) *path {
	if p := c.byName[string(name)]; p != nil {
		return p
	}
	if len(c.paths) >= c.limit {
		return nil
	}
	p := &path{name: string(name)}
	c.paths = append(c.paths, p)
	c.byName[p.name] = p
	return p
}

// read finds the values of an object.
func (c *pathsColumn) read(value any) bool {
	object, ok := value.(string)
	return ok && c.scan.object(c, object)
}

// add appends the values that were found.
func (c *pathsColumn) add() {
	s := &c.scan
	for i := range s.found {
		f := &s.found[i]
		p := f.path
		for len(p.kinds) < c.rows {
			p.kinds = append(p.kinds, byte(none))
		}
		p.kinds = append(p.kinds, byte(f.kind))
		v := &p.values[f.kind]
		if f.kind > arrays {
			v.addItems(s.items[f.from:f.to], f.kind-arrays)
			continue
		}
		v.addScalar(f.scalar, f.kind)
	}
	c.rows++
}

func (v *values) addScalar(s scalar, k kind) {
	switch k {
	case text:
		v.out = appendText(v.out, s.text)
	case integer, float:
		v.out = binary.LittleEndian.AppendUint64(v.out, s.bits)
	case boolean:
		v.out = append(v.out, byte(s.bits)) //nolint:gosec // 0 or 1
	case none, arrays: // has no values
	}
}

func (v *values) addItems(items []item, of kind) {
	for _, i := range items {
		isNull := byte(0)
		if i.kind == none {
			isNull = 1
		}
		v.nulls = append(v.nulls, isNull)
		v.addScalar(i.scalar, of)
	}
	v.items += uint64(len(items))
	v.ends = binary.LittleEndian.AppendUint64(v.ends, v.items)
}

func (c *pathsColumn) bytes(rows int) int {
	size := 0
	for _, p := range c.paths {
		size += len(p.name) + rows
		for k := range p.values {
			v := &p.values[k]
			size += len(typeNames[k]) + len(v.ends) + len(v.nulls) + len(v.out)
		}
	}
	return size
}

// write appends the names of the paths, the types of each, and then the values of each.
func (c *pathsColumn) write(out []byte, rows int) []byte {
	used := make([]*path, 0, len(c.paths))
	for _, p := range c.paths {
		if len(p.kinds) > 0 {
			used = append(used, p)
		}
	}
	out = binary.LittleEndian.AppendUint64(out, flatVersion)
	out = binary.AppendUvarint(out, uint64(len(used)))
	for _, p := range used {
		out = appendText(out, p.name)
	}
	for _, p := range used {
		out = p.writeTypes(out)
	}
	for _, p := range used {
		out = p.writeValues(out, rows)
	}
	return out
}

// has reports whether a path has values of a kind.
func (p *path) has(k kind) bool { return len(p.values[k].out) > 0 || len(p.values[k].ends) > 0 }

func (p *path) writeTypes(out []byte) []byte {
	n := uint64(0)
	for k := range kind(kinds) {
		if p.has(k) {
			n++
		}
	}
	out = binary.LittleEndian.AppendUint64(out, flatVersion)
	out = binary.AppendUvarint(out, n)
	for k := range kind(kinds) {
		if p.has(k) {
			out = appendText(out, typeNames[k])
		}
	}
	return out
}

// writeValues appends the index of the type of each row's value, then the values of each type. The index of a row without a value is the number of
// types.
func (p *path) writeValues(out []byte, rows int) []byte {
	var place [kinds]byte
	n := byte(0)
	for k := range kind(kinds) {
		if p.has(k) {
			place[k] = n
			n++
		}
	}
	place[none] = n
	for _, k := range p.kinds {
		out = append(out, place[k])
	}
	for range rows - len(p.kinds) {
		out = append(out, n)
	}
	for k := range kind(kinds) {
		v := &p.values[k]
		out = append(append(append(out, v.ends...), v.nulls...), v.out...)
	}
	return out
}

// scalar is a text, or the bits of a number or boolean.
type scalar struct {
	text string
	bits uint64
}

func floatBits(f float64) uint64 { return math.Float64bits(f) }

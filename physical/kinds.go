package physical

import "strings"

// Kinds is a set of kinds of values: those that a property has ever had, except null. A query that knows them reads only these; an empty set means
// that they are not known.
type Kinds uint8

// The kinds of values. They are stored as numbers: never change one.
const (
	Texts     Kinds = 1 << iota
	Wholes          // whole numbers that 64-bit floats have exactly
	BigWholes       // whole numbers that may be too large for that
	Floats          // other numbers
	Booleans
	Arrays
	Objects

	// Earlier stands for values of any kind that the property may have had before its kinds were noted. It stays in the set until the earlier values
	// have been looked at.
	Earlier
)

// AllKinds has all kinds except Earlier.
const AllKinds = Texts | Wholes | BigWholes | Floats | Booleans | Arrays | Objects

// Known reports whether the property has had no other kinds than these.
func (k Kinds) Known() bool { return k != 0 && k&Earlier == 0 }

// Only reports whether there are kinds, and all are among others.
func (k Kinds) Only(others Kinds) bool { return k != 0 && k&^others == 0 }

// longestNoted is the length of a name in bytes up to which its kinds are always noted. The limit on names is that many characters.
const longestNoted = 400

// Noted reports whether the kinds of every property with this name are noted. They are not if the name is too long, may be stored in the same way as
// another, or is not the name of a property of events.
func Noted(name string) bool {
	return name != "" && len(name) <= longestNoted && !strings.ContainsAny(name, ".%\uFFFD") && !NotAProperty(name)
}

// NotAProperty reports whether an event's value of this name is about its person, groups or elements, and so no property.
func NotAProperty(name string) bool {
	switch name {
	case "$set", "$set_once", "$unset", "$groups", "$group_set", "$elements", "$elements_chain":
		return true
	}
	index, ok := strings.CutPrefix(name, "$group_")
	return ok && len(index) == 1 && index[0] >= '0' && index[0] < '0'+GroupTypes
}

// KindsOfType returns the kinds of the values that ClickHouse stores under a type in a JSON column; [Earlier] for a type that our values never get.
func KindsOfType(typ string) Kinds {
	switch typ {
	case "String":
		return Texts
	case "Int64":
		return Wholes | BigWholes
	case "UInt64":
		return BigWholes
	case "Float64":
		return Floats
	case "Bool":
		return Booleans
	}
	if strings.HasPrefix(typ, "Array(") && strings.HasSuffix(typ, ")") {
		return Arrays
	}
	return Earlier
}

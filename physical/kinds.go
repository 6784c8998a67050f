package physical

import "strings"

// Kinds are the kinds of values that a property has ever had, null apart. A query that knows them reads no more than these; none means
// that they are not known.
type Kinds uint8

// The kinds of values. They are kept as numbers: never change one.
const (
	Texts     Kinds = 1 << iota
	Wholes          // whole numbers that 64-bit floats have exactly
	BigWholes       // whole numbers that may be too large for that
	Floats          // other numbers
	Booleans
	Arrays
	Objects

	// Earlier stands for values of any kind: the property may have had some before its kinds were noted. It stays beside those that are noted
	// until somebody has looked at the earlier values.
	Earlier
)

// AllKinds are all of them, without Earlier.
const AllKinds = Texts | Wholes | BigWholes | Floats | Booleans | Arrays | Objects

// Known reports whether these are all kinds that the property has had.
func (k Kinds) Known() bool { return k != 0 && k&Earlier == 0 }

// Only reports whether the kinds are known, and all among others.
func (k Kinds) Only(others Kinds) bool { return k != 0 && k&^others == 0 }

// longestNoted is how many bytes a name may have whose kinds of values are surely noted: that many characters are.
const longestNoted = 400

// Noted reports whether the kinds of values of a property of this name are noted of each that has values. They are not of names that are too long, that
// may be stored as others are, or under which an event has no property.
func Noted(name string) bool {
	return name != "" && len(name) <= longestNoted && !strings.ContainsAny(name, ".%\uFFFD") && !NotAProperty(name)
}

// NotAProperty reports whether what an event has under this name speaks about its person and groups.
func NotAProperty(name string) bool {
	switch name {
	case "$set", "$set_once", "$unset", "$groups", "$group_set", "$elements", "$elements_chain":
		return true
	}
	index, ok := strings.CutPrefix(name, "$group_")
	return ok && len(index) == 1 && index[0] >= '0' && index[0] < '0'+GroupTypes
}

// KindsOfType returns the kinds of the values that ClickHouse has under a type in a column of JSON; [Earlier] for a type that our values do not
// get.
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

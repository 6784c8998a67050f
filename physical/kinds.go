package physical

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
)

// AllKinds are all of them.
const AllKinds = Texts | Wholes | BigWholes | Floats | Booleans | Arrays | Objects

// Only reports whether the kinds are known, and all among others.
func (k Kinds) Only(others Kinds) bool { return k != 0 && k&^others == 0 }

package hogql

// Type is what the compiler knows about a value: just enough for the rules on NULL, time zones and property access. The zero Type is unknown, and
// unknown values count as nullable.
type Type struct {
	Kind     Kind
	Nullable bool
	Elem     *Type // of an Array
	// Zone is the time zone of a DateTime, if it is not the project's.
	Zone string
	// Time says of an Unknown that it is a date or a time, in a zone that only ClickHouse knows.
	Time bool
}

// Kind is the family of a type.
type Kind uint8

// The kinds of types.
const (
	Unknown Kind = iota
	Null
	Bool
	Int
	Float
	Decimal
	String
	UUID
	Date
	DateTime
	IntervalKind
	JSON // a JSON document, read as text
	ArrayKind
	TupleKind
	MapKind
	State // an intermediate aggregate state
)

// MayBeNull reports whether a value of the type can be NULL, as far as the compiler knows.
func (t Type) MayBeNull() bool { return t.Nullable || t.Kind == Unknown || t.Kind == Null }

// CastType is the result of a cast: values of a kind, converted by a function.
type CastType struct {
	Kind     Kind
	Function string
}

// CastTypes are the types allowed in a cast, by name (contract: hogql.md, section 5).
var CastTypes = map[string]CastType{
	"int": {Int, "toInt64"}, "integer": {Int, "toInt64"},
	"float": {Float, "toFloat64"}, "double": {Float, "toFloat64"}, "double precision": {Float, "toFloat64"}, "real": {Float, "toFloat64"},
	"text": {String, "toString"}, "varchar": {String, "toString"}, "char": {String, "toString"}, "string": {String, "toString"},
	"boolean": {Bool, "toBool"}, "bool": {Bool, "toBool"}, "date": {Date, "toDate"},
	"datetime": {DateTime, "toDateTime"}, "timestamp": {DateTime, "toDateTime"}, "timestamptz": {DateTime, "toDateTime"},
}
